"""`python -m regal`."""

from regal.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
