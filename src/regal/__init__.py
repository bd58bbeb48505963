"""Plan how a neural-network graph executes: checked, applied, verified in the real runtime.

```python
import regal

result = regal.optimize("model.tflite", "smaller.tflite")  # one device: less memory
print(result.peak_bytes, result.verification)
result = regal.schedule("graph.pb", "placed.pb", devices="2")  # several: faster, or fits
print(result.time_ns, result.peak_bytes, result.verification)
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.errors import BackendError, ModelError, PlanError, RegalError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.graph.types import LoadedModel
    from regal.result import Result
    from regal.schedule_result import ScheduleResult

__version__ = "0.1.0"

__all__ = [
    "BackendError",
    "ModelError",
    "PlanError",
    "RegalError",
    "UsageError",
    "__version__",
    "load",
    "optimize",
    "schedule",
]


def optimize(
    model: str | Path,
    out: str | Path | None = None,
    *,
    method: str = "regal",
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    threads: int = 1,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    devices: str | None = None,
    profiles: Sequence[str | Path] = (),
    capacity: int | None = None,
    ort_level: str = "none",
    in_place: bool = True,
    sub_buffers: bool = True,
    verify: bool = True,
    force: bool = False,
) -> Result:
    """Return a checked plan that needs less memory; with `out`, apply and verify it too.

    Args:
        model: a TensorFlow, ONNX, .tflite, graph .json or task-graph file.
        out: where the applied model goes; None writes nothing.
        method: a search method (`regal compare` lists them).
        evaluations: search budget in simulated plans; None: the method's default.
        seconds: search budget in seconds; None: no limit.
        seed: of every random choice; equal seeds give equal bytes.
        threads: changes the speed, never the result.
        shapes: input name -> shape, where the file leaves it open.
        dims: symbolic dimension -> size.
        devices: a preset or .toml file of one device; None: the one of the file, or a CPU.
        profiles: files of `regal profile`, whose op times override the cost model.
        capacity: arena bytes that must not be exceeded; see `Result.fits`.
        ort_level: "basic" or "extended": ONNX Runtime optimizes an ONNX model first.
        in_place: ops may write over an input that dies; off for kernels that do not survive it.
        sub_buffers: parts of concatenations and slices may lie inside the whole; likewise.
        verify: run both models in the real runtime, in child processes.
        force: replace `out` if it exists.

    Raises:
        UsageError: several devices are asked for (use `schedule`), or `out` exists, or is the
            input.
        ModelError: the model is broken or not supported.
        BackendError: the runtime cannot take the plan.
    """
    from regal import pipeline
    from regal.options import Options

    options = Options(
        devices=devices,
        profiles=tuple(Path(path) for path in profiles),
        method=method,
        evaluations=evaluations,
        seconds=seconds,
        seed=seed,
        threads=threads,
        shapes=shapes or {},
        dims=dims or {},
        capacity=capacity,
        ort_level=ort_level,
        in_place=in_place,
        sub_buffers=sub_buffers,
        verify=verify,
        force=force,
    )
    return pipeline.optimize(Path(model), None if out is None else Path(out), options)


def schedule(
    model: str | Path,
    out: str | Path | None = None,
    *,
    devices: str | None = None,
    objective: str = "time",
    time_weight: float = 1.0,
    memory_weight: float = 1.0,
    method: str = "regal",
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    threads: int = 1,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    profiles: Sequence[str | Path] = (),
    capacity: int | None = None,
    ort_level: str = "none",
    in_place: bool = True,
    sub_buffers: bool = True,
    verify: bool = True,
    force: bool = False,
) -> ScheduleResult:
    """Return a checked placement and schedule on several devices; with `out`, apply it too.

    Args:
        model: a TensorFlow, ONNX, .tflite, graph .json or task-graph file.
        out: where the applied model goes; None writes nothing.
        devices: a number, a preset, or a .toml file; None: those that the file describes.
        objective: "time", "memory" or "balanced".
        time_weight: of the running time in "balanced".
        memory_weight: of the largest peak in "balanced".
        method: a search method (`regal compare --devices` lists them).
        evaluations: search budget in simulated schedules; None: by the size of the graph.
        seconds: search budget in seconds; None: no limit.
        seed: of every random choice; equal seeds give equal bytes.
        threads: changes the speed, never the result.
        shapes: input name -> shape, where the file leaves it open.
        dims: symbolic dimension -> size.
        profiles: files of `regal profile`, whose op times override the cost model.
        capacity: bytes of each device that must not be exceeded; see `ScheduleResult.fits`.
        ort_level: "basic" or "extended": ONNX Runtime optimizes an ONNX model first.
        in_place: ops may write over an input that dies.
        sub_buffers: in bodies, parts of concatenations and slices may lie inside the whole.
        verify: run both models in the real runtime, in child processes.
        force: replace `out` if it exists.

    Raises:
        UsageError: one device is asked for, or `out` exists, or is the input.
        ModelError: the model is broken or not supported.
        BackendError: the runtime cannot take the plan.
    """
    from regal import pipeline
    from regal.options import Options
    from regal.schedule_result import ScheduleResult
    from regal.search.devices.objectives import Weights

    options = Options(
        objective=objective,
        weights=Weights(time=time_weight, memory=memory_weight),
        devices=devices,
        profiles=tuple(Path(path) for path in profiles),
        method=method,
        evaluations=evaluations,
        seconds=seconds,
        seed=seed,
        threads=threads,
        shapes=shapes or {},
        dims=dims or {},
        capacity=capacity,
        ort_level=ort_level,
        in_place=in_place,
        sub_buffers=sub_buffers,
        verify=verify,
        force=force,
    )
    result = pipeline.run(Path(model), None if out is None else Path(out), options)
    if not isinstance(result, ScheduleResult):
        raise UsageError(f"'{model}' is planned for one device: name several, or use optimize")
    return result


def load(
    model: str | Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the graphs in a model file.

    Raises:
        ModelError: the model is broken or not supported.
    """
    from regal.frontends import load as load_file

    return load_file(Path(model), shapes, dims)
