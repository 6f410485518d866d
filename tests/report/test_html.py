"""The page: one file without a network, figures that equal the ledger's, and a browser that can use it."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_real_runs

from ascend_sim.report.html import has_bokeh, write_html
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.slices import LABELS, coarser, lanes
from ascend_sim.run import Run

pytestmark = pytest.mark.skipif(not has_bokeh(), reason="bokeh is not installed")


def page(run: Run, what_if: Any = None) -> str:
    stream = io.StringIO()
    write_html(run, stream, what_if)
    return stream.getvalue()


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def unpack(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").astype(np.int64)


def test_the_page_asks_the_network_for_nothing() -> None:
    text = page(test_real_runs.launch(chip="toy"))
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", own)
    assert "@import" not in own
    assert len(text) < 8_000_000


def test_the_slices_of_each_lane_add_up_to_the_ledger() -> None:
    run = test_real_runs.launch(chip="toy", num=2)
    data = data_of(page(run))
    starts, lengths = unpack(data["slices"]["start"]), unpack(data["slices"]["length"])
    labels, first = unpack(data["slices"]["label"]), 0
    for (core, pipe), count in zip(data["lanes"], data["slices"]["counts"], strict=True):
        got: Counter[str] = Counter()
        position = 0
        for i in range(first, first + count):
            position += int(starts[i])  # the gap behind the slice before
            position += int(lengths[i])
            got[LABELS[labels[i]].split("/")[0]] += int(lengths[i])
        assert position <= run.cycles
        causes = run.pipes[data["cores"][core]["name"]][pipe]["causes"]
        assert got == {name: cycles for name, cycles in causes.items() if name != "idle"}
        first += count


def test_short_neighbours_are_joined_and_no_cycle_is_lost_at_the_ends() -> None:
    run = test_real_runs.launch(chip="toy", num=2, tiles=20)
    fine, none = lanes(build_ledger(run.log))
    coarse, resolution = lanes(build_ledger(run.log), most=200)
    assert none == 0 < resolution
    assert sum(map(len, coarse)) <= 200 < sum(map(len, fine))
    for one, other in zip(fine, coarse, strict=True):
        for array in (one.arrays, other.arrays):
            ends = array["start"] + array["length"]
            assert (array["start"][1:] >= ends[:-1]).all()
        assert one.arrays["start"][0] == other.arrays["start"][0]
        assert one.arrays["joined"].sum() == other.arrays["joined"].sum()
    same = coarser(fine[0].arrays, 1)
    assert len(same["start"]) == len(fine[0])


# ---- in a browser ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Run, list[str]]]:
    """A page in headless Chromium, offline, with everything that its console said."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium here to open the page in")
    run = test_real_runs.launch(chip="toy", num=2, tiles=8)
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page(run, run.what_if(["mte2", "buffer"]).as_dict()), encoding="utf-8")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(viewport={"width": 1366, "height": 768}, offline=True)
        tab = context.new_page()
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:")) else said.append(r.url),
        )
        tab.goto(file.as_uri())
        tab.wait_for_selector("body[data-ready=yes]", timeout=60_000)
        yield tab, run, said
        chromium.close()


@pytest.mark.slow
def test_every_pane_opens_by_its_key_and_the_console_stays_silent(opened: Any) -> None:
    tab, _, said = opened
    for number in "12345678":
        tab.keyboard.press(number)
        chosen = tab.eval_on_selector("#tabs button[aria-selected=true]", "b => b.textContent")
        assert chosen.endswith(number)
        assert len(tab.inner_text(".pane:not([hidden])")) > 20
    assert said == []


@pytest.mark.slow
def test_a_click_on_a_slice_leads_to_its_line(opened: Any) -> None:
    tab, run, said = opened
    lane = next(k for k, (_, pipe) in enumerate(data_lanes(run)) if pipe == "V")
    where = tab.evaluate(
        """(wanted) => {
            const k = timeline.shown.indexOf(wanted);
            let i = slices.first[wanted];
            while (data.names[slices.name[i]] !== "add" || labelOf(i) !== "busy") i++;
            show(slices.start[i] - 100, slices.end[i] + 100);
            const frame = timeline.view.frame ?? timeline.view.frame_view;
            const box = (timeline.view.canvas_view?.el ?? timeline.view.el).getBoundingClientRect();
            const middle = (slices.start[i] + slices.end[i]) / 2;
            return [box.left + frame.x_scale.compute(middle), box.top + frame.y_scale.compute(k + 0.5), placeOf(i)];
        }""",
        lane,
    )
    tab.mouse.click(where[0], where[1])
    source = Path(test_real_runs.__file__).read_text(encoding="utf-8").splitlines()
    line = next(k for k, text in enumerate(source, 1) if "asc.add(c, a, b, tile)" in text)
    assert where[2].endswith(f"test_real_runs.py:{line}")
    assert f"test_real_runs.py:{line}" in tab.inner_text("#details")
    selected = tab.eval_on_selector("#source-text .selected", "row => row.dataset.line")
    assert selected.endswith(f"test_real_runs.py:{line}")
    assert said == []


def data_lanes(run: Run) -> list[tuple[int, str]]:
    return [(lane.core, lane.pipe.name) for lane in lanes(run.ledger)[0]]


@pytest.mark.slow
def test_keys_zoom_and_move(opened: Any) -> None:
    tab, run, said = opened
    tab.keyboard.press("0")
    spans = [tab.evaluate("[timeline.x.start, timeline.x.end]")]
    for key in "wda0":
        tab.keyboard.press(key)
        spans.append(tab.evaluate("[timeline.x.start, timeline.x.end]"))
    whole, near, right, back, again = spans
    assert whole == again == [0, run.cycles]
    assert near[1] - near[0] < whole[1] - whole[0]
    assert right[0] > near[0]
    assert back == pytest.approx(near)
    assert said == []
