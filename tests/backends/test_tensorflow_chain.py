"""Orders as control edges of TensorFlow graphs: loops, branches, functions. Nothing runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tensorflow.bodies import Library, Planned, bodies_of
from regal.backends.tensorflow.chain import Unit, chain_of
from regal.backends.tensorflow.flatten import flatten
from regal.backends.tensorflow.nodes import Nodes, edge_of
from regal.frontends.tensorflow.schema import new

if TYPE_CHECKING:
    from regal.backends.tensorflow.chain import Chain
    from regal.backends.tensorflow.nodes import Facts
    from regal.frontends.tensorflow.schema import Proto

LOOP = """
zero Const
enter Enter zero frame=w
merge Merge enter next
less Less merge merge
cond LoopCond less
switch Switch merge cond
body Identity switch:1
next NextIteration body
exit Exit switch
after Identity exit
before Neg x
x Placeholder
"""
BRANCHES = """
p Placeholder
x Placeholder
switch Switch x p
no Neg switch
yes Abs switch:1
merge Merge no yes
other Square x
"""


def nodes_of(text: str) -> list[Proto]:
    """Return nodes from lines such as "name Kind input ^control frame=w"."""
    nodes = []
    for line in text.strip().splitlines():
        name, op, *rest = line.split()
        node = new("NodeDef")
        node.name, node.op = name, op
        for word in rest:
            if word.startswith("frame="):
                node.attr["frame_name"].s = word.removeprefix("frame=").encode()
            else:
                node.input.append(word)
        nodes.append(node)
    return nodes


def facts_of(nodes: Nodes) -> Facts:
    facts = nodes.facts()
    assert facts is not None
    return facts


def chained(text: str, *order: str | tuple[str, ...], devices: str = "") -> Chain:
    """Return the chain of ops in `order`; `devices` has one digit per op."""
    nodes = Nodes(nodes_of(text))
    units = [
        Unit((op,) if isinstance(op, str) else op, (int(devices[i]) if devices else 0,), i, i)
        for i, op in enumerate(order)
    ]
    return chain_of(nodes, facts_of(nodes), units)


def test_each_op_waits_for_the_one_before_it_on_its_device() -> None:
    text = "a Const\nb Const\nc Const\nd Const\ne Const"
    assert list(chained(text, "a", "b", "c", "d", "e", devices="01010").edges) == [
        ("a", "c"),
        ("b", "d"),
        ("c", "e"),
    ]


def test_what_a_data_edge_says_already_is_not_said_again() -> None:
    text = "a Const\nb Neg a\nc Const ^b"
    assert not chained(text, "a", "b", "c").edges


def test_inputs_are_taken_apart_as_main_graphs_and_functions_write_them() -> None:
    assert [(e.source, e.slot) for e in map(edge_of, ("a", "a:2", "f:output:1"))] == [
        ("a", 0),
        ("a", 2),
        ("f", 1),
    ]
    assert edge_of("s:output_true:0").slot == 1


def test_a_cycle_has_no_facts() -> None:
    assert Nodes(nodes_of("a Neg b\nb Neg a")).facts() is None


def test_a_loop_is_entered_and_left_at_its_border_only() -> None:
    loop = ("enter", "merge", "less", "cond", "switch", "body", "next", "exit")
    assert list(chained(LOOP, "before", loop, "after").edges) == [("before", "enter")]
    assert list(chained(LOOP, loop, "before", "after").edges) == [
        ("exit", "before"),
        ("before", "after"),
    ]


def test_frames_and_conditions_of_a_loop_end_with_it() -> None:
    facts = facts_of(Nodes(nodes_of(LOOP)))
    assert facts.inside["body"] == ("w",)
    assert (facts.inside["enter"], facts.outside["enter"]) == ((), ("w",))
    assert (facts.inside["exit"], facts.outside["exit"]) == (("w",), ())
    assert facts.alive["exit"] == facts.alive["after"] == frozenset()


def test_a_node_behind_a_switch_runs_only_if_its_branch_is_taken() -> None:
    alive = facts_of(Nodes(nodes_of(BRANCHES))).alive
    assert alive["switch"] == alive["merge"] == alive["other"] == frozenset()
    assert alive["no"] == {("p:0", 0)}
    assert alive["yes"] == {("p:0", 1)}


def test_two_branches_of_one_value_need_no_gate_towards_each_other() -> None:
    chain = chained(BRANCHES, "switch", "no", "merge")
    assert not chain.helpers


def test_behind_a_branch_a_gate_opens_whichever_way_is_taken() -> None:
    chain = chained(BRANCHES, "switch", "no", "other")
    # Waiting for the dead "no" would kill "other"; waiting for nothing would lose the order.
    assert ("no", "other") not in chain.edges
    gates = {helper.name: helper for helper in chain.helpers}
    (gate,) = [h for h in chain.helpers if h.op == "Merge"]
    assert (gate.name, "other") in chain.edges
    then, otherwise = (gates[name] for name, _ in gate.inputs)
    assert then.waits == ("no",)
    assert not otherwise.waits
    assert {slot for h in (then, otherwise) for _, slot in h.inputs} == {0, 1}
    # And what ran before the branch is waited for, too: the gate may open early.
    assert ("switch", "other") in chain.edges


def test_a_file_that_has_an_order_already_gets_other_names() -> None:
    chain = chained(f"{BRANCHES}regal_order/gate_2 NoOp", "switch", "no", "other")
    assert {helper.name.split("/")[0] for helper in chain.helpers} == {"regal_order_"}


def test_a_nested_branch_opens_gate_by_gate() -> None:
    text = """
p Placeholder
q Placeholder
x Placeholder
outer Switch x p
inner_q Switch q p
inner Switch outer:1 inner_q:1
deep Neg inner:1
other Square x
"""
    nodes = Nodes(nodes_of(text))
    assert facts_of(nodes).alive["deep"] == {("p:0", 1), ("inner_q:1", 1)}
    chain = chained(text, "deep", "other")
    assert not chain.loose
    assert [h.op for h in chain.helpers].count("Merge") == 2
    assert [later for _, later in chain.edges] == ["other"]


def test_what_cannot_be_said_is_reported() -> None:
    text = """
p Placeholder
q Placeholder
x Placeholder
first Switch x p
second Switch x q
odd Merge first second:1
behind Neg odd
other Square x
"""
    chain = chained(text, "behind", "other")
    assert list(chain.loose) == [(0, 1)]
    assert not chain.edges


def test_a_function_is_ordered_inside_and_as_a_whole() -> None:
    graph = new("GraphDef")
    graph.node.extend(nodes_of("a Const\ncall F a\nb Neg call\nc Const"))
    function = graph.library.function.add()
    function.signature.name = "F"
    function.signature.input_arg.add(name="x")
    function.node_def.extend(nodes_of("u Neg x\nv Neg x"))
    library = Library(graph)
    homes = [[("", "a")], [("F", "v")], [("F", "u")], [("", "c")], [("", "b")]]
    planned = Planned(homes, placement=(0,) * 5, position=(0, 1, 2, 3, 4), in_step=homes)
    edges = {}
    for body in bodies_of(library, planned):
        edges[body.name] = list(chain_of(body.nodes, facts_of(body.nodes), body.units).edges)
    assert edges == {"": [("call", "c"), ("c", "b")], "F": [("v", "u")]}


def test_an_op_between_the_ops_of_a_function_is_loose() -> None:
    graph = new("GraphDef")
    graph.node.extend(nodes_of("a Const\ncall F a\nc Const"))
    function = graph.library.function.add()
    function.signature.name = "F"
    function.node_def.extend(nodes_of("u Const\nv Const"))
    homes = [[("F", "u")], [("", "c")], [("F", "v")]]
    planned = Planned(homes, placement=(0, 0, 0), position=(0, 1, 2), in_step=homes)
    main, *_ = [b for b in bodies_of(Library(graph), planned) if not b.name]
    chain = chain_of(main.nodes, facts_of(main.nodes), main.units)
    assert len(chain.loose) == 1
    assert not chain.edges


def test_a_result_that_the_step_does_not_need_is_not_waited_for() -> None:
    graph = new("GraphDef")
    graph.node.extend(nodes_of("x Const\nleft Neg x\nright Abs x\ny Square x"))
    homes = [[("", "left"), ("", "right")], [("", "y")]]
    step = [[("", "left")], [("", "y")]]
    planned = Planned(homes, placement=(1, 1), position=(0, 1), in_step=step)
    (main,) = bodies_of(Library(graph), planned)
    chain = chain_of(main.nodes, facts_of(main.nodes), main.units)
    assert list(chain.edges) == [("left", "y")]
    assert main.device_of == {"left": 1, "right": 1, "y": 1}


def nested() -> Proto:
    """Return a main graph that calls F, which calls G in between its own nodes."""
    made = new("GraphDef")
    made.node.extend(nodes_of("x Placeholder\ncall F x"))
    outer = made.library.function.add()
    outer.signature.name = "F"
    outer.signature.input_arg.add(name="t")
    outer.signature.output_arg.add(name="r")
    outer.node_def.extend(nodes_of("a Neg t\ng PartitionedCall a:y:0 ^a\nb Neg g:output:1 ^g"))
    outer.node_def[1].attr["f"].func.name = "G"
    outer.ret["r"] = "g:output:0"
    inner = made.library.function.add()
    inner.signature.name = "G"
    inner.signature.input_arg.add(name="s")
    inner.signature.output_arg.add(name="p")
    inner.signature.output_arg.add(name="q")
    inner.node_def.extend(nodes_of("a Abs s\nd Square a:y:0 ^s"))
    inner.node_def[1].attr["_class"].list.s.append(b"loc:@a")
    inner.ret["p"] = "d:y:0"
    inner.ret["q"] = "a:y:0"
    return made


def test_a_function_that_is_called_by_a_function_becomes_part_of_it() -> None:
    made = nested()
    assert flatten(made, ["F", "G"]) == {("G", "a"): ("F", "g/a"), ("G", "d"): ("F", "g/d")}
    function = made.library.function[0]
    assert {node.name: list(node.input) for node in function.node_def} == {
        "a": ["t"],
        "g/a": ["a:y:0", "^a"],  # it begins when the call may
        "g/d": ["g/a:y:0", "^a"],
        "b": ["g/a:y:0", "^g/d"],  # the call is done when its last node is
    }
    assert list(function.node_def[2].attr["_class"].list.s) == [b"loc:@g/a"]
    assert dict(function.ret) == {"r": "g/d:y:0"}
    assert list(made.node[1].input) == ["x"]


def test_one_function_after_the_other_becomes_part_of_it() -> None:
    made = nested()
    outer, inner = made.library.function
    again = outer.node_def.add()
    again.CopyFrom(outer.node_def[1])
    again.name, again.input[:] = "h", ["g:output:0"]
    again.attr["f"].func.name = "H"
    third = made.library.function.add()
    third.CopyFrom(inner)
    third.signature.name = "H"
    outer.ret["r"] = "h:output:0"
    flatten(made, ["F", "G", "H"])
    reads = {node.name: node.input[0] for node in outer.node_def}
    assert reads["h/a"] == "g/d:y:0"
    assert dict(outer.ret) == {"r": "h/d:y:0"}


def test_a_function_that_is_not_planned_node_by_node_stays_a_call() -> None:
    made = nested()
    assert flatten(made, ["F"]) == {}
    assert [node.name for node in made.library.function[0].node_def] == ["a", "g", "b"]


def test_what_must_have_run_in_the_inner_function_must_have_run_in_the_outer_one() -> None:
    made = nested()
    outer, inner = made.library.function
    outer.control_ret["g_done"] = "g"
    outer.signature.control_output.append("g_done")
    inner.control_ret["d_done"] = "d"
    inner.signature.control_output.append("d_done")
    flatten(made, ["F", "G"])
    assert dict(outer.control_ret) == {"g_done/d_done": "g/d"}
    assert list(outer.signature.control_output) == ["g_done/d_done"]
