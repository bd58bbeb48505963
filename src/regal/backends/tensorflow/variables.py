"""The variables of a graph while it runs: initialized as the file says, or with made-up values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.backends.tensorflow.feeds import variable_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OWN = "regal_check"  # the first part of the names of nodes that are added here
_OF_REFERENCES = frozenset({"Variable", "VariableV2"})


class Variables:
    """Nodes, added to a graph, that ask, fill and read its variables.

    Left out are variables whose shape the file does not tell.
    """

    def __init__(self, tf: Any, graph: Any) -> None:
        self._checks: dict[str, Any] = {}
        self._given: dict[str, Any] = {}  # what a fill assigns: fed, for it may be large
        self._fills: dict[str, Any] = {}
        self._reads: dict[str, Any] = {}
        for op in list(graph.get_operations()):
            if op.type in _OF_REFERENCES or op.type == "VarHandleOp":
                self._add(tf, op)

    def _add(self, tf: Any, op: Any) -> None:
        raw, dtype, name = tf.raw_ops, op.get_attr("dtype"), op.name
        shape = tf.TensorShape(op.get_attr("shape"))
        if not shape.is_fully_defined() or dtype in (tf.resource, tf.variant):
            return
        (handle,) = op.outputs
        with tf.compat.v1.name_scope(f"{OWN}/{name}/"):
            made = self._given[name] = tf.compat.v1.placeholder(dtype, shape)
            if op.type == "VarHandleOp":
                self._checks[name] = raw.VarIsInitializedOp(resource=handle)
                self._fills[name] = raw.AssignVariableOp(resource=handle, value=made)
                self._reads[name] = raw.ReadVariableOp(resource=handle, dtype=dtype)
            else:
                self._checks[name] = raw.IsVariableInitialized(ref=handle)
                self._fills[name] = raw.Assign(ref=handle, value=made)
                self._reads[name] = raw.Identity(input=handle)

    def initialize(
        self, session: Any, init: Sequence[str], refusals: tuple[type[BaseException], ...]
    ) -> int:
        """Run the initializers of the file, fill what they left, and return how many that were."""
        for name in init:
            try:
                session.run(session.graph.get_operation_by_name(name))
            except refusals:
                continue  # what it needs may not be there, such as a table's file
        ready = session.run(self._checks)
        left = [name for name, is_ready in ready.items() if not is_ready]
        for name in left:
            given = self._given[name]
            value = variable_value(name, tuple(given.shape), given.dtype.as_numpy_dtype)
            session.run(self._fills[name], {given: value})
        return len(left)

    def values(self, session: Any) -> Iterator[tuple[str, Any]]:
        """Yield (variable, its value) of those that have one; together they may be too large."""
        ready = session.run(self._checks)
        for name, is_ready in ready.items():
            if is_ready:
                yield name, session.run(self._reads[name])
