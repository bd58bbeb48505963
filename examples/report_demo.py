"""A page and a trace of a model that ships with the repository, planned for two GPUs.

    python examples/report_demo.py

writes demo-output/randwire.html and demo-output/randwire.trace.json. Open the page in a browser,
the trace in ui.perfetto.dev.
"""

from __future__ import annotations

import sys
from pathlib import Path

import regal
from regal.options import Options
from regal.report.of_result import stories_of
from regal.report.page import report_html
from regal.report.trace import trace_json
from regal.schedule_comparison import compare_schedules, schedule_comparison_to_dict
from regal.schedule_result import schedule_result_to_dict

MODEL = Path(__file__).parent / "models" / "randwire_ws_32_4_075.onnx"
OUTPUT = Path(__file__).parents[1] / "demo-output"
DEVICES = "gpu-pcie-2"
EVALUATIONS = 1_000
METHODS = ("regal", "brkga", "heft", "etf", "partition-dfs", "round-robin", "single-device")


def main() -> int:
    """Write the page and the trace; return 1 if the plan is no faster than one device."""
    OUTPUT.mkdir(exist_ok=True)
    result = regal.schedule(MODEL, devices=DEVICES, objective="time", evaluations=EVALUATIONS)
    system = result.plan.system
    options = Options(objective="time", evaluations=EVALUATIONS)
    rows = compare_schedules(result.model, system, METHODS, options)
    comparison = schedule_comparison_to_dict(MODEL.name, result.model, system, rows, options)
    document = schedule_result_to_dict(result)
    stories = stories_of(result)
    page, trace = OUTPUT / "randwire.html", OUTPUT / "randwire.trace.json"
    page.write_text(report_html(document, stories, comparison), encoding="utf-8")
    trace.write_text(trace_json(stories, document), encoding="utf-8")
    before, after = document["before"]["time_s"], document["after"]["time_s"]
    print(f"{MODEL.name} on {system.name}: {1e3 * before:.3f} ms -> {1e3 * after:.3f} ms")
    for path in (page, trace):
        print(f"{path.parent.name}/{path.name}: {path.stat().st_size:,} B")
    return 0 if after < before else 1


if __name__ == "__main__":
    sys.exit(main())
