"""Features of ops, and the keys that weights make of them."""

import numpy as np

from regal import _native
from regal._native import CompactDevices, DeviceDecoder, GeneLayout
from regal.search.devices.es import weight_count
from tests.baselines.devices.problems import task_graph
from tests.search.device_schedules import layered

EFT = DeviceDecoder.EFT


def test_features_have_names_and_are_standardized() -> None:
    tiny = layered(12, 64)
    table = _native.device_features(CompactDevices(tiny.native()))
    names = [name for name, _, _ in _native.device_feature_names()]
    assert table.shape == (64, len(names))
    assert len(set(names)) == len(names)
    assert set(table[:, names.index("one")].tolist()) == {1.0}
    for name, column in zip(names[1:], table.T[1:], strict=True):
        assert abs(column.mean()) < 0.2, name
        assert np.allclose(column, 0) or 0.5 < column.std() < 1.01, name
        assert np.abs(column).max() <= 4.0, name


def test_features_say_what_they_are_called() -> None:
    # A chain of three, then a second end: by hand.
    tiny = task_graph([[4, 4], [2, 2], [6, 6], [2, 2]], [(0, 1, 10), (1, 2, 10), (0, 3, 2)])
    table = _native.device_features(CompactDevices(tiny.native()))
    column = {n: table[:, i] for i, (n, _, _) in enumerate(_native.device_feature_names())}

    def ranking(name: str) -> list[int]:
        return [int(op) for op in np.argsort(column[name], kind="stable")]

    assert ranking("duration") == [1, 3, 0, 2]
    assert ranking("top_level") == [0, 1, 3, 2]  # 0, 4, 4, 6
    assert ranking("bottom_level") == [3, 2, 1, 0]  # 2, 6, 8, 12
    assert ranking("bottom_level_sent") == [3, 2, 1, 0]  # 2, 6, 18, 32
    assert ranking("slack") == [0, 1, 2, 3]  # 0, 0, 0, 6
    assert column["slack"][3] > column["slack"][2] == column["slack"][0]
    assert ranking("depth") == [0, 1, 3, 2]
    assert ranking("send_in") == [0, 3, 1, 2]  # 0, 2, 10, 10
    assert ranking("fan_out") == [2, 3, 1, 0]


def test_zero_weights_are_neutral_keys() -> None:
    problem = layered(13, 20).native()
    compact = CompactDevices(problem)
    (genes,) = _native.feature_keys(compact, EFT, np.zeros(weight_count(2)))
    assert set(genes.tolist()) == {2**31}


def test_a_weight_moves_the_keys_of_its_head_alone() -> None:
    problem = layered(14, 20).native()
    compact = CompactDevices(problem)
    layout = GeneLayout(problem, EFT)
    features = len(_native.device_feature_names())
    heads = {
        0: slice(layout.priority, layout.affinity),
        1: slice(layout.affinity, layout.colocation, 2),
        2: slice(layout.affinity + 1, layout.colocation, 2),
        3: slice(layout.colocation, layout.wait),
        4: slice(layout.wait, layout.transfer),
        5: slice(layout.transfer, layout.weight),
    }
    for head, where in heads.items():
        weights = np.zeros(weight_count(2))
        weights[head * features + 1] = 3.0  # duration
        (genes,) = _native.feature_keys(compact, EFT, weights)
        duration = _native.device_features(compact)[:, 1]
        if head == 5:
            producers = [a for a, _, _ in _edges_of(problem)]
            duration = duration[producers]
        moved = genes[where].astype(np.int64) - 2**31
        assert np.all((moved > 0) == (duration > 0)), head
        genes[where] = 2**31
        assert set(genes.tolist()) == {2**31}, head


def _edges_of(problem: _native.DeviceProblem) -> list[tuple[int, int, int]]:
    tiny = layered(14, problem.n_ops)
    return [(tiny.producers[t], op, t) for op, t in tiny.reads]
