"""How ONNX Runtime must be set so that it runs a file in the file's own order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import SessionOptions


def session_options(
    *, file_order: bool = True, level: str = "none", threads: int = 1
) -> SessionOptions:
    """Return options under which memory is what the plan says, and not more.

    Arena and memory pattern are off: they hold bytes that no tensor needs. So is the reuse
    of dead buffers, which keeps a buffer between its two tensors. Optimizations would change
    the graph that was planned: optimize first, plan then (`ort_level` of `regal.optimize`).

    Args:
        file_order: run nodes as listed; otherwise in ONNX Runtime's default order.
        level: "none", "basic" or "extended": graph optimizations.
        threads: within an operator; operators run one at a time.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = {
        "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    }[level]
    if file_order:
        options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.enable_mem_reuse = False
    # Or else every reader of a DequantizeLinear gets a copy of it, which runs when it likes.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.log_severity_level = 4
    return options
