"""Count the bytes of live tensors while PyTorch runs: eager code and compiled graphs alike."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class MemoryTracker(TorchDispatchMode):
    """Follows every storage that is made while it is active, from its birth to its death.

    `live_bytes` are those alive now, `peak_bytes` the most at once since the last `reset`.
    Storages that were there before count nothing, and neither does what kernels take for
    themselves.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.live_bytes = 0
        self.peak_bytes = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return True: compiled graphs run under this mode instead of eager code."""
        return True

    def reset(self) -> None:
        """Count the peak from now on."""
        self.peak_bytes = self.live_bytes

    def count_new(self, values: Sequence[torch.Tensor]) -> None:
        """Count tensors that kernels made which do not pass the dispatcher."""
        for value in values:
            self._see(value, is_new=True)
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a call, and count what it made."""
        given = kwargs or {}
        for leaf in tree_leaves((args, given)):
            self._see(leaf, is_new=False)
        result = self._called(func, args, given)
        for leaf in tree_leaves(result):
            self._see(leaf, is_new=True)
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return result

    def _called(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return what a call yields; what the bodies of control flow make is counted, too."""
        kernels = getattr(func, "py_kernels", {})
        dense = kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
        if not isinstance(func, torch._ops.HigherOrderOperator) or dense is None:
            return func(*args, **kwargs)
        # Kernels of control flow refuse to run under a mode; their bodies do not.
        watched = [self._watched(each) if callable(each) else each for each in args]
        return dense(*watched, **kwargs)

    def _watched(self, body: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with self:
                return body(*args)

        return run

    def _see(self, value: object, *, is_new: bool) -> None:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return
        storage = value.untyped_storage()
        key = storage._cdata
        known = self._known.get(key)
        if known is not None and known() is not None:
            return
        self._known[key] = weakref.ref(storage)
        if is_new:
            size = storage.nbytes()
            self.live_bytes += size
            weakref.finalize(storage, self._forget, key, size).atexit = False

    def _forget(self, key: int, size: int) -> None:
        self.live_bytes -= size
        del self._known[key]
