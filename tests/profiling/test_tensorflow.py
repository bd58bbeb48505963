"""Op times from TensorFlow's StepStats."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.frontends import load
from regal.profiling.profile import profile_model
from regal.profiling.tensorflow_child import node_times
from regal.profiling.types import ProfileOptions

NEEDS_TENSORFLOW = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="tensorflow is not installed"
)

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: 4 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT
         tensor_shape { dim { size: 4 } dim { size: 4 } } float_val: 0.5 } } } }
node { name: "m" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "a" op: "Tanh" input: "m" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Tanh" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
"""


@NEEDS_TENSORFLOW
def test_tensorflow_measures_every_op_and_equal_ones_share_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "m.pbtxt"
    path.write_text(GRAPH)
    found = profile_model(path, ProfileOptions(runs=3, warmup=1))
    loaded = load(path)
    assert found.runtime.startswith("tensorflow")
    cost = graph_cost(loaded.graph, system_named("1"), found)
    assert cost.coverage == {"profile": len(loaded.graph.ops)}
    tanh = [time for key, time in found.times.items() if key.startswith("tensorflow:Tanh")]
    assert [time.samples for time in tanh] == [2 * 3]
    assert found.total_ns > 0


SAVES = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "name" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
       attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { }
         string_val: "left_behind.txt" } } } }
node { name: "text" op: "AsString" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "first" op: "GatherV2" input: "text" input: "zero" input: "zero"
       attr { key: "Tparams" value { type: DT_STRING } }
       attr { key: "Tindices" value { type: DT_INT32 } }
       attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "write" op: "WriteFile" input: "name" input: "first" }
"""


@NEEDS_TENSORFLOW
def test_a_graph_that_writes_files_leaves_none_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.pbtxt"
    path.write_text(SAVES)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    found = profile_model(path, ProfileOptions(runs=1, warmup=0))
    assert any("WriteFile" in key for key in found.times)
    assert not list(here.iterdir())


def test_a_node_takes_its_kernel_over_all_its_executions() -> None:
    def node(name: str, start: int, end: int, micros: tuple[int, int] = (0, 0)) -> object:
        return SimpleNamespace(
            node_name=name, op_start_rel_nanos=start, op_end_rel_nanos=end,
            op_start_rel_micros=micros[0], op_end_rel_micros=micros[1],
        )  # fmt: skip

    first = SimpleNamespace(node_stats=[node("a", 100, 700), node("b", 0, 0, (2, 5))])
    second = SimpleNamespace(node_stats=[node("a", 10, 60), node("c", 9, 8)])
    stats = SimpleNamespace(dev_stats=[first, second])
    assert node_times(stats) == {"a": 650, "b": 3000, "c": 0}
