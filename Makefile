# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
JOBS ?= 2

.PHONY: demo test check bench docs models clean

$(VENV)/core.stamp: constraints.txt pyproject.toml CMakeLists.txt $(wildcard native/*)
	@echo "installing into $(VENV): a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ".[tflite]"
	touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ".[tflite,tensorflow,cp-sat,placement,dev]"
	touch $@

# Less memory on models that ship with the repository, measured in TFLM and ONNX Runtime.
demo: $(VENV)/core.stamp
	$(BIN)/python examples/demo.py

# Everything that tests need, then all tests (below 15 minutes on 2 cores).
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) tests

# Lint, format, types: what every commit must pass besides the tests.
check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Benchmarks and fuzzing; benchmarks/README.md says what each one shows.
bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/run.py

# Regenerate what is generated: the command-line page, tables made of rows, the models that ship.
docs: $(VENV)/dev.stamp
	$(BIN)/python tools/make_cli_docs.py
	$(BIN)/regal evaluate --table
models: $(VENV)/dev.stamp
	$(BIN)/python tools/models/make.py

clean:
	rm -rf $(VENV) build demo-output
