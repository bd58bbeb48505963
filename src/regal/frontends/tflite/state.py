"""Which ops must keep their file order although no tensor says so: state and side effects.

Comparing outputs cannot prove this: a read moved across a write of the same variable may
agree for many runs. So it is derived from the structure, and plans are checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from regal.frontends.tflite.schema import CUSTOM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.frontends.tflite.model import FileOperator, FileSubgraph, TfliteFile

# A piece of state: ("resource", container, name), ("table", id), ("variable", subgraph,
# tensor), ("argument", position) inside a body, ("effects",), or ANY when it is not known.
State = tuple[str | int, ...]
ANY: Final[State] = ("any",)
_MOST_ACCESSES: Final = 256  # of one body; above, it counts as touching everything
_EFFECTS: Final[State] = ("effects",)
_RANDOM: Final[State] = ("random",)

_RANDOM_KINDS: Final = frozenset({"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"})
_TABLE_READS: Final = frozenset({"HASHTABLE_FIND", "HASHTABLE_SIZE"})

# Custom ops of which the source shows that outputs depend on inputs alone.
_PURE_CUSTOM: Final = frozenset(
    {
        "TFLite_Detection_PostProcess",
        "TFLite_Detection_PostProcess_Int8",
        "PosenetDecoderOp",
        "edgetpu-custom-op",
        "ethos-u",
        "Convolution2DTransposeBias",
        "MaxPoolingWithArgmax2D",
        "MaxUnpooling2D",
        "AudioSpectrogram",
        "Mfcc",
        "TFSentencepieceTokenizeOp",
        "TFRagged_Range",
        "RaggedTensorToTensor",
        "tftext:WhitespaceTokenizer",
        "ngrams",
    }
)
# A flex op runs a TensorFlow op; these parts of names mark the ones with state or effects.
_FLEX_EFFECTS: Final = (
    "Assert",
    "Print",
    "Log",
    "Variable",
    "Assign",
    "Random",
    "Multinomial",
    "Queue",
    "Stack",
    "TensorArray",
    "Table",
    "Iterator",
    "Dataset",
    "Summary",
    "PyFunc",
    "Write",
    "Save",
    "Restore",
    "Barrier",
    "Lookup",
    "Stateful",
    "Mutex",
    "Send",
    "Recv",
)
# It ends the run early in most invocations (kTfLiteAbort): what stands before it has run,
# what stands behind it has not. So nothing may cross it.
_BARRIERS: Final = frozenset({"CIRCULAR_BUFFER"})
# Lists node indices, so these files keep their order.
CONTROL_METADATA: Final = "model_control_dependencies"


@dataclass(frozen=True, slots=True)
class Access:
    """One op touches one piece of state."""

    state: State
    writes: bool


def control_inputs_of(file: TfliteFile, index: int) -> list[tuple[int, ...]]:
    """Return, per op of subgraph `index`, the earlier ops that it must follow.

    Reads keep their place among the writes of the same state; CALL_ONCE counts as a write of
    everything; ops with other side effects keep their order among themselves.

    Cost: linear in ops times the pieces of state.
    """
    operators = file.subgraphs[index].operators
    if any(entry.name == CONTROL_METADATA for entry in file.metadata):
        return [(i - 1,) if i else () for i in range(len(operators))]
    states = _states_of(file, index, {})
    known: dict[int, frozenset[Access]] = {}
    accesses = [_accesses(file, index, op, states, known) for op in operators]
    before: list[set[int]] = [set() for _ in operators]
    _order_accesses(accesses, before)
    _order_barriers(operators, before)
    return [tuple(sorted(ops)) for ops in before]


def resource_states(file: TfliteFile, index: int) -> dict[int, State]:
    """Return tensor -> state for the resource handles that subgraph `index` makes itself."""
    made = {t for op in file.subgraphs[index].operators for t in op.outputs}
    return {t: s for t, s in _states_of(file, index, {}).items() if t in made}


def is_known_pure(op: FileOperator) -> bool:
    """Return whether `op` has no effect besides its outputs and the state that it names."""
    if op.kind == CUSTOM:
        if op.custom_code.startswith("Flex"):
            return not any(part in op.custom_code for part in _FLEX_EFFECTS)
        return op.custom_code in _PURE_CUSTOM
    return op.kind not in ("DELEGATE", "STABLEHLO_CUSTOM_CALL")


def _order_accesses(accesses: Sequence[Iterable[Access]], before: list[set[int]]) -> None:
    last_write: dict[State, int] = {}
    readers: dict[State, list[int]] = {}
    for position, touched in enumerate(accesses):
        states = set(touched)
        if any(access.state == ANY for access in states):
            # A write of everything, which all later accesses follow: nothing before it is
            # needed any more.
            before[position].update(last_write.values(), *readers.values())
            last_write, readers = {ANY: position}, {}
            continue
        for access in states:
            state = access.state
            if (earlier := last_write.get(state, last_write.get(ANY))) is not None:
                before[position].add(earlier)
            if access.writes:
                before[position].update(readers.pop(state, ()))
        for access in states:
            if access.writes:
                last_write[access.state] = position
            else:
                readers.setdefault(access.state, []).append(position)
        before[position].discard(position)


def _order_barriers(operators: Sequence[FileOperator], before: list[set[int]]) -> None:
    last = -1
    for position, op in enumerate(operators):
        if op.custom_code in _BARRIERS:
            before[position].update(range(max(last, 0), position))
            last = position
        elif last >= 0:
            before[position].add(last)


def _accesses(
    file: TfliteFile,
    index: int,
    op: FileOperator,
    states: Mapping[int, State],
    known: dict[int, frozenset[Access]],
) -> frozenset[Access]:
    """Return what `op`, with its bodies, reads and writes. `known` remembers bodies."""
    subgraph = file.subgraphs[index]
    found: set[Access] = set()
    if op.kind == "CALL_ONCE":
        found.add(Access(ANY, writes=True))
    if op.kind in _RANDOM_KINDS:
        found.add(Access(_RANDOM, writes=True))
    if not is_known_pure(op):
        found.add(Access(_EFFECTS, writes=True))
    for body in op.bodies:
        arguments = _arguments(file, op)
        for access in _body_accesses(file, body, known):
            state = access.state
            if state[0] == "argument":
                position = int(state[1])
                given = arguments[position] if position < len(arguments) else -1
                state = states.get(given, ANY)
            found.add(Access(state, access.writes))
    for tensor in op.inputs:
        if tensor < 0:
            continue
        if subgraph.tensors[tensor].is_variable:
            found.add(Access(("variable", index, tensor), writes=True))
        elif subgraph.tensors[tensor].type.name in ("resource", "variant") and not op.bodies:
            reads = op.kind == "READ_VARIABLE" or op.kind in _TABLE_READS
            found.add(Access(states.get(tensor, ANY), writes=not reads))
    for tensor in op.outputs:
        if tensor >= 0 and subgraph.tensors[tensor].is_variable:
            found.add(Access(("variable", index, tensor), writes=True))
    return frozenset(found)


def _arguments(file: TfliteFile, op: FileOperator) -> tuple[int, ...]:
    """Return the inputs that the bodies of `op` receive; -1 where that may change.

    An IF keeps its condition. A loop hands outputs of its body to the next run: what the body
    does not return in the same place is another piece of state the second time.
    """
    if op.kind in ("IF", "STABLEHLO_CASE"):
        return op.inputs[1:]
    if op.kind in ("WHILE", "STABLEHLO_WHILE"):
        body = file.subgraphs[op.bodies[-1]]
        kept = [a == b for a, b in zip(body.inputs, body.outputs, strict=False)]
        return tuple(t if k else -1 for t, k in zip(op.inputs, kept, strict=False))
    return op.inputs


def _body_accesses(
    file: TfliteFile, index: int, known: dict[int, frozenset[Access]]
) -> frozenset[Access]:
    if index not in known:
        known[index] = frozenset()  # bodies form no cycle: checked before
        subgraph = file.subgraphs[index]
        arguments: dict[int, State] = {
            tensor: ("argument", i) for i, tensor in enumerate(subgraph.inputs)
        }
        states = _states_of(file, index, arguments)
        found = frozenset(
            access
            for op in subgraph.operators
            for access in _accesses(file, index, op, states, known)
        )
        is_simple = len(found) <= _MOST_ACCESSES
        known[index] = found if is_simple else frozenset({Access(ANY, writes=True)})
    return known[index]


def _states_of(file: TfliteFile, index: int, arguments: Mapping[int, State]) -> dict[int, State]:
    """Return tensor -> state for the resource tensors of a subgraph whose origin is known."""
    states = dict(arguments)
    subgraph: FileSubgraph = file.subgraphs[index]
    for op in subgraph.operators:
        if op.kind == "VAR_HANDLE" and op.options is not None and op.outputs:
            container, name = op.options.text(0), op.options.text(1)
            states[op.outputs[0]] = ("resource", container, name)
        elif op.kind == "HASHTABLE" and op.options is not None and op.outputs:
            states[op.outputs[0]] = ("table", op.options.i32(0))
    return states
