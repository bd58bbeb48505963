"""A plan as a C++ header, for firmware that does without TFLM's planner.

`tflite::NonPersistentMemoryPlannerShim` takes a `BufferPlan`: one offset per buffer, in the
sequence in which TFLM adds them (tensors of all subgraphs, then scratch buffers).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from regal.backends.tflite.offsets import arena_offsets, operator_orders, placed_subgraphs
from regal.backends.tflite.tflm_planner import arena_buffers, place_like_tflm
from regal.frontends.tflite import source_of

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan

_LONGEST_NAME: Final = 60


def c_header(model: LoadedModel, plan: ModelPlan, name: str = "model") -> str:
    """Return a header with the plan's offsets and the size of the arena's head.

    It belongs to the model with the plan's operator order (see `apply`); what the plan leaves
    to TFLM is placed as TFLM's planner would. Scratch sizes are those of the reference
    kernels.

    Args:
        model: the loaded model.
        plan: a checked plan of it.
        name: prefix of the constants; other characters than letters and digits become "_".
    """
    source = source_of(model)
    placed_graphs = placed_subgraphs(model, plan)
    orders = operator_orders(placed_graphs)
    offsets = arena_offsets(source, placed_graphs)
    buffers = place_like_tflm(arena_buffers(source, orders, offsets))
    head = max((buffer.offset + buffer.bytes for buffer in buffers), default=0)
    prefix = re.sub(r"\W", "_", name, flags=re.ASCII)
    words = "".join(word.capitalize() for word in prefix.split("_") if word) or "Model"
    guard = f"{prefix.upper()}_MEMORY_PLAN_H_"
    rows = "\n".join(
        f"        {{{buffer.offset}}},  // {i}: {buffer.bytes} bytes, {_comment(buffer.name)}"
        for i, buffer in enumerate(buffers)
    )
    return f"""#ifndef {guard}
#define {guard}

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/micro/memory_planner/memory_plan_struct.h"

// Bytes of the arena's head: all buffers below, aligned to 16. The tail comes on top.
constexpr size_t k{words}HeadBytes = {head};
constexpr int32_t k{words}BufferCount = {len(buffers)};

// The same layout as tflite::BufferPlan, whose last member stands for a longer array.
struct {words}MemoryPlan {{
  int32_t buffer_count;
  tflite::BufferDescriptor entries[{max(len(buffers), 1)}];
}};

constexpr {words}MemoryPlan k{words}MemoryPlan = {{
    k{words}BufferCount,
    {{
{rows}
    }},
}};

inline const tflite::BufferPlan* Get{words}BufferPlan() {{
  return reinterpret_cast<const tflite::BufferPlan*>(&k{words}MemoryPlan);
}}

#endif  // {guard}
"""


def _comment(name: str) -> str:
    """Return a tensor name that cannot end or continue a line comment."""
    return re.sub(r"[^\x20-\x5b\x5d-\x7e]", "?", name)[:_LONGEST_NAME]
