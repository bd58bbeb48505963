"""What the methods for several devices are compared with, by name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from regal._native import DeviceRule
from regal.baselines.devices.graph_as_sequence import graph_as_sequence
from regal.baselines.devices.m_sct import m_sct
from regal.baselines.devices.partition_dfs import partition_dfs
from regal.baselines.devices.per_graph import per_graph_reinforce
from regal.baselines.devices.rules import RuleMethod, random_schedules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.search.devices.types import DeviceMethod

METHODS: Mapping[str, DeviceMethod] = MappingProxyType(
    {
        "single-device": RuleMethod(DeviceRule.SINGLE_DEVICE),
        "round-robin": RuleMethod(DeviceRule.ROUND_ROBIN),
        "random": random_schedules,
        "file-order": RuleMethod(DeviceRule.FILE_ORDER),
        "dfs": RuleMethod(DeviceRule.DFS),
        "bfs": RuleMethod(DeviceRule.BFS),
        "greedy-memory": RuleMethod(DeviceRule.GREEDY_MEMORY),
        "m-topo": RuleMethod(DeviceRule.M_TOPO),
        "m-etf": RuleMethod(DeviceRule.M_ETF),
        "m-sct": m_sct,
        "etf": RuleMethod(DeviceRule.ETF),
        "heft": RuleMethod(DeviceRule.HEFT),
        "cpop": RuleMethod(DeviceRule.CPOP),
        "peft": RuleMethod(DeviceRule.PEFT),
        "heuristics": RuleMethod(),
        "partition-dfs": partition_dfs,
        "graph-as-sequence": graph_as_sequence,
        "per-graph-reinforce": per_graph_reinforce,
    }
)
