"""Pages in headless Chromium: from a local file, without network, under the hand of a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from regal.graph.builder import GraphBuilder
from regal.report.build import story_of_plans
from regal.report.page import report_html
from regal.report.summary import lookup
from regal.search.packing import before_plan
from tests.report.chromium import Browser, Page, running_chromium
from tests.report.large import large_story
from tests.report.stories import HOSTILE, random_story, result_of, step_story, two_device_story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from regal.report.story import Story

NUMBERS = """[...document.querySelectorAll('data')].map(
    (e) => [e.dataset.from, e.value, e.textContent])"""
# Where rounding and units change, and halves that could go either way.
EDGES = (0, 1, 999, 1000, 1023, 1024, 1536, 10239, 10240, 1047552, 1048576, 2**31, 123456789012)
SECONDS = (0.0, 1e-9, 9.995e-7, 1e-6, 1.0005e-6, 9.9995e-5, 0.0123456, 0.9999995, 1.0, 3599.5)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as running:
        yield running


def shown(browser: Browser, folder: Path, story: Story, *, script: bool = True) -> Page:
    """Return the page of a story, opened as a local file."""
    path = folder / "report.html"
    path.write_text(report_html(result_of(story), [story]), encoding="utf-8")
    return opened(browser, path, script=script)


def opened(browser: Browser, path: Path, *, script: bool = True) -> Page:
    page = browser.open(path, script=script)
    if script:
        page.settle()
    assert page.complaints == []
    assert page.requests == [path.as_uri()]
    return page


def embedded(page: Page) -> dict[str, Any]:
    keys = ("result", "stories", "comparison")
    text = "JSON.parse(document.getElementById('{}').textContent)"
    return {key: page.evaluate(text.format(key)) for key in keys}


def focus(page: Page, chart: str) -> None:
    page.evaluate(f"document.querySelector('{chart} canvas[tabindex]').focus()")


def spoken(page: Page) -> str:
    page.settle()
    return str(page.evaluate("document.getElementById('spoken').textContent"))


def range_shown(page: Page) -> str:
    page.settle()
    return plain(page.evaluate("document.querySelector('.toolbar output').textContent"))


def plain(text: str) -> str:
    """Return a text with hyphens for its dashes."""
    return text.replace("\N{EN DASH}", "-")


def middle(page: Page, selector: str) -> tuple[float, float, float]:
    """Return left, right and middle height of an element, once it is in view."""
    page.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    page.settle()
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    left, right, top, bottom = page.evaluate(
        f"(({{left, right, top, bottom}}) => [left, right, top, bottom])({box})"
    )
    return left, right, (top + bottom) / 2


def test_a_page_opens_offline_without_complaint_and_shows_the_numbers_of_its_json(
    browser: Browser, tmp_path: Path
) -> None:
    page = shown(browser, tmp_path, two_device_story())
    root = embedded(page)
    numbers = page.evaluate(NUMBERS)
    assert len(numbers) > 30
    for path, value, text in numbers:
        assert float(value) == lookup(root, path)
        assert text
    assert root["result"] == result_of(two_device_story())


def test_numbers_read_the_same_with_and_without_javascript(
    browser: Browser, tmp_path: Path
) -> None:
    story = two_device_story()
    rows = [
        {"method": f"m{i}", "peak_bytes": size, "time_s": seconds, "evaluations": size}
        for i, (size, seconds) in enumerate(
            (size, SECONDS[i % len(SECONDS)]) for i, size in enumerate(EDGES)
        )
    ]
    path = tmp_path / "numbers.html"
    path.write_text(report_html(result_of(story), [story], {"methods": rows}), encoding="utf-8")
    still = opened(browser, path, script=False).evaluate(NUMBERS)
    alive = opened(browser, path).evaluate(NUMBERS)
    assert [(path, text) for path, _, text in alive] == [(path, text) for path, _, text in still]


def test_the_curves_that_the_page_draws_reach_the_peaks_of_the_json(
    browser: Browser, tmp_path: Path
) -> None:
    page = shown(browser, tmp_path, random_story(5, n_ops=12, n_devices=2))
    root = embedded(page)
    for device in range(2):
        focus(page, f'[data-chart=memory][data-device="{device}"]')
        for key, label in (("p", "after"), ("b", "before")):
            page.press(key)
            peak = root["stories"][0]["sides"][label]["peak_bytes"][device]
            assert f"{label}: {peak:,} B" in spoken(page)


def test_without_javascript_tables_and_curves_are_there(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story(), script=False)
    is_shown = "(s) => !!document.querySelector(s)?.getClientRects().length"
    assert page.evaluate(f"({is_shown})('svg.still')")
    assert page.evaluate(f"({is_shown})('td .name')")
    assert not page.evaluate(f"({is_shown})('.toolbar')")
    assert "JavaScript, which is off" in page.evaluate("document.body.innerText")


def test_the_pointer_on_an_op_tells_its_name_and_times(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story())
    left, right, _ = middle(page, "[data-chart=timeline]")
    top = page.evaluate("document.querySelector('[data-chart=timeline]').getBoundingClientRect().y")
    # Titles are 22 pixels, lanes 24, gaps 4: the first lane of the plan before.
    x = left + 116 + (right - left - 128) * 3 / 33
    page.touch("mouseMoved", x, top + 38)
    page.settle()
    tip = plain(page.evaluate("document.getElementById('tip').innerText"))
    assert tip.splitlines()[:3] == ["a", "Split, step 0 on gpu0", "0 ns - 7 ns (7 ns)"]


def test_a_drag_zooms_in_and_a_button_shows_all_again(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story())
    assert range_shown(page) == "0 ns - 33 ns"
    left, right, y = middle(page, "[data-chart=memory]")
    start, width = left + 116, right - left - 128
    page.touch("mousePressed", start + width / 3, y, buttons=1)
    page.touch("mouseMoved", start + width / 2, y, buttons=1)
    page.touch("mouseReleased", start + width * 2 / 3, y)
    assert range_shown(page) == "11 ns - 22 ns"
    page.evaluate(
        "[...document.querySelectorAll('button')].find(b => b.title === 'Show all').click()"
    )
    assert range_shown(page) == "0 ns - 33 ns"


def test_keys_move_zoom_and_list_what_is_in_memory(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story())
    focus(page, "[data-chart=memory]")
    for key, time in (("ArrowRight", "7 ns"), ("ArrowRight", "11 ns"), ("ArrowLeft", "7 ns")):
        page.press(key)
        assert spoken(page).startswith(f"{time}, before: ")
    assert "after: 14 B" in spoken(page)
    page.press("Enter")
    page.settle()
    listed = page.evaluate("document.querySelector('.moment').innerText")
    assert "after: 14 B in 3 buffers, while c runs" in listed
    assert "workspace of c" in listed
    page.press("+")
    assert range_shown(page) != "0 ns - 33 ns"
    page.press("0")
    assert range_shown(page) == "0 ns - 33 ns"


def test_the_search_finds_ops_by_name_and_kind(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story())
    for text, answer in (("relu", "1 of 1: b"), ("a", "1 of 3: a"), ("zzz", "none")):
        page.evaluate(
            f"""((box) => {{ box.value = '{text}'; box.dispatchEvent(new Event('input')); }})(
                document.querySelector('.toolbar input'))"""
        )
        outputs = page.evaluate("[...document.querySelectorAll('.toolbar output')].pop().innerText")
        assert outputs == answer


def test_hostile_names_do_nothing_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story(HOSTILE))
    focus(page, "[data-chart=memory]")
    page.press("p")
    page.press("Enter")
    page.settle()
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("typeof window.pwned") == "undefined"
    assert "<img src=x" in page.evaluate("document.querySelector('.moment').innerText")
    assert page.complaints == []


def test_a_plan_of_steps_and_a_graph_without_ops_have_pages(
    browser: Browser, tmp_path: Path
) -> None:
    page = shown(browser, tmp_path, step_story())
    assert range_shown(page) == "steps 0-12"
    g = GraphBuilder()
    graph = g.build(outputs=[g.input("x", 4)])
    plan = before_plan(graph, None)
    shown(browser, tmp_path, story_of_plans(graph, plan, plan))


def test_each_entry_of_a_model_has_charts_of_its_own(browser: Browser, tmp_path: Path) -> None:
    stories = [two_device_story("one_"), two_device_story("two_")]
    path = tmp_path / "entries.html"
    path.write_text(report_html(result_of(stories[0]), stories), encoding="utf-8")
    page = opened(browser, path)
    titles = page.evaluate("[...document.querySelectorAll('.entry')].map(e => e.textContent)")
    assert ["one_diamond" in titles[0], "two_diamond" in titles[1]] == [True, True]
    charts = "document.querySelectorAll('[data-story=\"1\"] .chart.alive').length"
    assert page.evaluate(charts) == page.evaluate(charts.replace("1", "0")) > 0
    focus(page, '[data-story="1"] [data-chart=memory]')
    page.press("p")
    assert "runs two_c" in spoken(page)


def test_paper_is_white_and_the_button_changes_the_theme(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, two_device_story())
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.evaluate("document.getElementById('theme').click()")
    dark = page.evaluate(color)
    assert light != dark
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(color) == dark
    assert page.complaints == []


def test_forty_thousand_ops_open_and_zoom(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, large_story(40_000))
    for _ in range(3):
        page.evaluate("document.querySelector('.toolbar [title=\"Zoom in\"]').click()")
        page.settle()
    focus(page, "[data-chart=memory]")
    page.press("p")
    assert "after: " in spoken(page)
    assert page.complaints == []
