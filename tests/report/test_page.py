"""Pages: the numbers of the JSON, nothing from outside, and names that are only ever text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from regal.errors import PlanError
from regal.report.build import story_of_schedules
from regal.report.html import data_block, element, escaped
from regal.report.page import SCRIPTS, report_html
from regal.report.story import Story
from regal.report.summary import FORMS, lookup
from regal.report.svg import MOST_COLUMNS, memory_picture
from tests.report.large import large_story
from tests.report.schedules import schedule_plan, system_of
from tests.report.stories import (
    HOSTILE,
    diamond,
    random_story,
    result_of,
    step_story,
    two_device_story,
)


class Markup(HTMLParser):
    """What a browser makes of a page, as far as tests ask."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []  # innermost tag, text
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))


def page_of(story: Story, **more: Any) -> str:
    return report_html({**result_of(story), **more}, [story])


def blocks(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="(\w+)">(.*?)</script>', page, re.S)
    return {name: json.loads(text) for name, text in found}


def test_every_number_in_the_markup_is_the_one_at_its_place_in_the_json() -> None:
    story = two_device_story()
    methods = [{"method": "regal", "time_s": 3.3e-8, "peak_bytes": 14, "evaluations": 10}]
    page = report_html(result_of(story), [story], {"methods": methods})
    root = blocks(page)
    assert root["result"] == result_of(story)
    data = re.findall(
        r'<data value="([^"]*)" data-from="([^"]*)" data-form="(\w+)">([^<]*)</data>', page
    )
    assert len(data) > 30
    for value, path, form, text in data:
        expected = lookup(root, path)
        assert (value, text) == (str(expected), FORMS[form](expected))
    paths = {path for _, path, _, _ in data}
    assert {"result.after.peak_bytes", "stories.0.sides.after.peak_bytes.1"} <= paths
    assert "comparison.methods.0.time_s" in paths


def test_columns_say_what_the_story_says() -> None:
    story = two_device_story()
    (told,) = blocks(page_of(story))["stories"]
    strings = told["strings"]
    for label, side in story.sides:
        columns = told["sides"][label]
        assert columns["peak_bytes"] == list(side.peak_bytes)
        runs = zip(columns["runs"]["start"], columns["runs"]["length"], strict=True)
        assert [(a, a + n) for a, n in runs] == [(run.start, run.end) for run in side.runs]
        held = [columns["held"][key] for key in ("offset", "bytes", "spare")]
        rooms = [(offset, size, size + spare) for offset, size, spare in zip(*held, strict=True)]
        assert rooms == [(h.offset, h.bytes, h.room) for h in side.held]
    assert [strings[i] for i in told["ops"]["name"]] == ["a", "b", "c", "d"]
    sent = told["sides"]["after"]["sent"]
    assert [strings[i] for i in sent["name"]] == ["a.0", "b.0"]
    assert (sent["maker"], sent["readers"]) == ([0, 1], [[1], [3]])


def test_a_page_asks_for_nothing_outside_of_itself() -> None:
    page = page_of(two_device_story())
    markup = Markup(page)
    links = [a[key] for _, a in markup.tags for key in ("src", "href", "action") if key in a]
    assert links == ["data:,", "#main"]
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_the_policy_allows_this_script_and_this_style_and_no_other() -> None:
    page = page_of(two_device_story())
    policies = [
        a["content"]
        for _, a in Markup(page).tags
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    assert style
    assert script
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script[1], style[1])
    ]
    assert policies == [
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    ]


def test_hostile_names_are_text_wherever_they_appear() -> None:
    story = two_device_story(HOSTILE)
    plain = Markup(page_of(two_device_story()))
    verified = {
        "runtime": HOSTILE,
        "outputs_equal": True,
        "invocations": 3,
        "before": {HOSTILE: 5},
        "after": {HOSTILE: 4},
        "detail": HOSTILE,
    }
    document = result_of(story, model=HOSTILE)
    document |= {"notes": [HOSTILE], "method": HOSTILE, "verified": verified}
    comparison = {"methods": [{"method": HOSTILE, "failure": HOSTILE}]}
    page = report_html(document, [story], comparison)
    hostile = Markup(page)
    assert "img" not in {tag for tag, _ in hostile.tags}
    assert not [key for _, a in hostile.tags for key in a if key.startswith("on")]
    # As many scripts as a harmless page has: one with code, three with data.
    for kind in ("script", "style", "iframe", "a"):
        counts = [sum(tag == kind for tag, _ in m.tags) for m in (plain, hostile)]
        assert counts[0] == counts[1], kind
    assert blocks(page)["result"]["model"] == HOSTILE
    assert any("<img src=x onerror=" in text for tag, text in hostile.texts if tag == "span")
    page.encode()  # no half of a character is left


def test_a_string_cannot_end_its_block_of_data() -> None:
    block = data_block("x", {"name": "</script><!--\u2028&"})
    assert block.count("</script>") == 1
    assert "<!--" not in block
    assert json.loads(block.split(">", 1)[1].rsplit("<", 1)[0]) == {"name": "</script><!--\u2028&"}


def test_text_is_escaped_and_markup_is_not_escaped_twice() -> None:
    inner = element("b", {"title": '"<'}, "a < b")
    assert inner == '<b title="&quot;&lt;">a &lt; b</b>'
    assert element("p", None, inner, "&") == f"<p>{inner}&amp;</p>"
    assert escaped("a\x00b\ud800\u202e\tc") == "a\ufffdb\ufffd\ufffd c"


def test_our_scripts_set_text_and_never_markup() -> None:
    for name in SCRIPTS:
        code = files("regal.report").joinpath("assets", name).read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "Function(", "write("):
            assert word not in code, name
        assert "</script" not in code
        assert "<!--" not in code


def test_tensors_at_the_peak_stand_in_the_page_without_any_script() -> None:
    markup = Markup(page_of(two_device_story()))
    names = [text for tag, text in markup.texts if tag == "span"]
    for name in ("a.0", "b.0", "c.0", "workspace"):
        assert name in names


def test_a_result_of_other_plans_is_refused() -> None:
    story = two_device_story()
    document = result_of(story)
    document["after"]["peak_bytes"] += 1
    with pytest.raises(PlanError) as caught:
        report_html(document, [story])
    assert str(caught.value) == ("result says that the peak after is 15 bytes; its plans reach 14")


def test_a_page_says_what_the_runtime_measured_or_why_it_did_not() -> None:
    story = step_story()
    assert "No runtime has run this plan: no output was asked for." in page_of(story)
    run = {
        "runtime": "tflm 1.0",
        "outputs_equal": False,
        "invocations": 20,
        "before": {"head_bytes": 2048},
        "after": {"head_bytes": 1024},
        "detail": "",
    }
    verified = {**run, "runtimes": [run], "skipped": "LiteRT: not installed"}
    texts = [text for _, text in Markup(page_of(story, verified=verified)).texts]
    assert "outputs differ in tflm 1.0" in texts
    assert "outputs DIFFERENT in 20 runs" in texts
    assert texts[texts.index("head") : texts.index("head") + 4] == [
        "head",
        "2,048 B",
        "1,024 B",
        "-50.0 %",
    ]
    assert "Skipped: LiteRT: not installed." in texts


def test_a_proven_optimum_and_a_capacity_are_badges() -> None:
    story = step_story()
    optimal = {"order": True, "arena": False, "time": None}
    capacity = {"bytes": 10, "fits": False, "overflow_bytes": 2048}
    page = page_of(story, optimal=optimal, fits=False, capacity=capacity)
    texts = [t for _, t in Markup(page).texts]
    assert "peak memory proven optimal" in texts
    assert "packing proven optimal" not in texts
    assert "2.00 KiB too much" in texts


def test_a_device_that_holds_nothing_is_named_and_not_drawn() -> None:
    graph, system = diamond(), system_of(3)
    plan = schedule_plan(graph, system, [0, 2, 0, 0])
    page = page_of(story_of_schedules(graph, system, plan, plan))
    assert "Never hold anything: gpu1." in page
    drawn = [a["data-device"] for _, a in Markup(page).tags if a.get("data-chart") == "memory"]
    assert drawn == ["0", "2"]


def test_on_one_device_the_running_time_is_no_achievement() -> None:
    optimal = {"order": False, "arena": False, "time": True}
    for story, is_shown in ((step_story(), False), (two_device_story(), True)):
        page = page_of(story, optimal=optimal)
        assert ("Running time" in page) == is_shown
        assert ("running time proven optimal" in page) == is_shown


def test_several_devices_say_whether_they_fit_and_where_times_come_from() -> None:
    document = result_of(two_device_story())
    document["after"]["overflow_bytes"] = 1536
    document["before"]["overflow_bytes"] = 2048
    document |= {"fits": False, "cost_sources": {"file": 1, "roofline": 3}}
    document["optimal"]["time"] = True
    rows = [{"method": "a", "relative": 1.0}, {"method": "b", "relative": 1.255}]
    page = report_html(document, [two_device_story()], {"methods": rows})
    texts = [text for _, text in Markup(page).texts]
    for text in (
        "1.50 KiB too much",
        "without a plan 2.00 KiB too much",
        "file (1), roofline (3)",
        "running time proven optimal",
    ):
        assert text in texts
    assert texts.index("0.0 %") < texts.index("+25.5 %")


def test_a_figure_at_its_bound_is_said_to_be_optimal() -> None:
    story = step_story()
    peak = max(story.after.peak_bytes)
    for bound, text in ((peak, "none: proven optimal"), (peak - 1, "above the bound")):
        page = page_of(story, lower_bound={"peak_bytes": bound, "time_s": None})
        assert text in [shown for _, shown in Markup(page).texts]
        assert ("none: proven optimal" in page) == (bound == peak)


def test_a_still_picture_shows_the_peak_however_short_it_is() -> None:
    story = large_story(10_000)
    picture = memory_picture(story, 0)
    heights = [float(y) for y in re.findall(r"\d,([\d.]+)", picture)]
    assert min(heights) == 1.0  # the upper edge
    assert len(heights) < 2 * 2 * (MOST_COLUMNS + 1)


def test_methods_that_failed_say_why_and_empty_columns_are_left_out() -> None:
    story = step_story()
    rows = [
        {"method": "a", "peak_bytes": 10, "gap": 0.0, "optimal": True, "seconds": 0.5},
        {"method": "b", "failure": "not installed"},
    ]
    page = report_html(result_of(story), [story], {"methods": rows})
    texts = [text.strip() for _, text in Markup(page).texts]
    start = texts.index("Methods")
    for text in ("a ★", "10 B", "0.0 %", "not installed", "★ proven optimal"):
        assert text in texts[start:]
    assert "overflow" not in texts[start:]


def test_ten_thousand_ops_with_long_names_stay_below_five_megabytes() -> None:
    prefix = "while/body/transformer/encoder/layer_with_a_long_name/self_attention/projection/"
    story = large_story(10_000, prefix)
    size = len(page_of(story).encode())
    assert size < 5_000_000


def test_random_stories_have_pages_whose_peaks_are_theirs() -> None:
    for seed in range(10):
        story = random_story(seed, n_ops=9, n_devices=3)
        (told,) = blocks(page_of(story))["stories"]
        assert told["sides"]["after"]["peak_bytes"] == list(story.after.peak_bytes)
