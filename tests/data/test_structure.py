"""When two graphs count as the same."""

from dataclasses import replace

from regal.data.structure import structure_hash
from regal.graph.types import Graph, Op, Role, Tensor


def graph_of(*rows: tuple[str, tuple[int, ...]], size: int = 4) -> Graph:
    """Return a graph of one input (tensor 0) and ops (kind, inputs), op i writing tensor i + 1."""
    tensors = tuple(
        Tensor(name=f"t{i}", shape=(size,), dtype="float32", bytes=4 * size,
               role=Role.INPUT if i == 0 else Role.ACTIVATION, storage=i)
        for i in range(len(rows) + 1)
    )  # fmt: skip
    ops = tuple(
        Op(name=f"op{i}", kind=kind, inputs=inputs, outputs=(i + 1,))
        for i, (kind, inputs) in enumerate(rows)
    )
    return Graph(
        name="g", framework="onnx", ops=ops, tensors=tensors, inputs=(0,), outputs=(len(rows),)
    )


BASE = (("A", (0,)), ("B", (1,)), ("C", (1,)), ("D", (2, 3)))


def test_sizes_and_names_do_not_matter() -> None:
    wide = graph_of(*BASE, size=99)
    renamed = replace(wide, ops=tuple(replace(op, name=op.name + "x") for op in wide.ops))
    assert structure_hash(graph_of(*BASE)) == structure_hash(renamed)


def test_the_order_of_ops_in_the_file_does_not_matter() -> None:
    other = graph_of(("A", (0,)), ("C", (1,)), ("B", (1,)), ("D", (3, 2)))
    assert structure_hash(graph_of(*BASE)) == structure_hash(other)


def test_kinds_edges_and_bodies_matter() -> None:
    hashes = {structure_hash(graph_of(*BASE))}
    hashes.add(structure_hash(graph_of(*BASE[:3], ("E", (2, 3)))))
    hashes.add(structure_hash(graph_of(*BASE[:2], ("C", (2,)), ("D", (2, 3)))))
    hashes.add(structure_hash(graph_of(*BASE, ("D", (2, 3)))))
    with_body = graph_of(*BASE)
    first = replace(with_body.ops[0], subgraphs=(graph_of(("A", (0,))),))
    hashes.add(structure_hash(replace(with_body, ops=(first, *with_body.ops[1:]))))
    first = replace(with_body.ops[0], subgraphs=(graph_of(("B", (0,))),))
    hashes.add(structure_hash(replace(with_body, ops=(first, *with_body.ops[1:]))))
    assert len(hashes) == 6


def test_two_readers_of_one_value_are_not_two_values() -> None:
    # x -> A -> B, C  against  x -> A -> B, x -> A -> C: as many ops of each kind but A.
    shared = graph_of(("A", (0,)), ("A", (0,)), ("B", (1,)), ("C", (1,)))
    apart = graph_of(("A", (0,)), ("A", (0,)), ("B", (1,)), ("C", (2,)))
    assert structure_hash(shared) != structure_hash(apart)
