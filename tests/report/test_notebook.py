"""A run shows itself in a notebook; its parts are those of the summary."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import test_real_runs

from ascend_sim.report.memory_map import live_bytes, residents
from isa.types import Space


def test_a_run_is_html_whose_bars_are_whole() -> None:
    run = test_real_runs.launch(chip="toy", num=2)
    text = run._repr_html_()
    ElementTree.fromstring(text)  # well-formed
    assert "<script" not in text
    assert f"{run.cycles:,} cycles" in text
    for bar in re.findall(r'height:13px[^>]*">(.*?)</span>', text):
        assert sum(map(float, re.findall(r"width:([\d.]+)%", bar))) == pytest.approx(100, abs=0.02)
    table = run.what_if(["mte2"])._repr_html_()
    assert "<b>mte2</b>" in table


def test_what_lives_in_ub_and_when() -> None:
    run = test_real_runs.launch(chip="toy", num=1, tiles=3, blocks=1)
    found = residents(run.ledger[0], run.ledger.calls.things)
    by_name: dict[str, list[tuple[int, int]]] = {}
    for one in found:
        assert one.space is Space.UB
        assert one.high - one.low == 2048
        by_name.setdefault(one.name, []).append((one.start, one.end))
    assert {name: len(values) for name, values in by_name.items()} == {
        "in_x[0]": 3, "in_y[0]": 3, "out[0]": 3,
    }  # fmt: skip
    for values in by_name.values():
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(values))
    steps = live_bytes(found, Space.UB)
    assert max(live for _, live in steps) <= 3 * 2048
    assert steps[-1][1] == 0


@pytest.mark.slow
def test_a_notebook_runs_and_shows_the_run(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="jupyter is not installed")
    nbclient = pytest.importorskip("nbclient", reason="jupyter is not installed")
    pytest.importorskip("ipykernel", reason="jupyter is not installed")
    here = Path(__file__).parent
    code = (
        f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent.parent)!r}]\n"
        "import test_real_runs\n"
        "test_real_runs.launch(chip='toy')"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(
        book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    (shown,) = [output for output in book.cells[0].outputs if "data" in output]
    assert "<b>add_tiles</b>" in shown["data"]["text/html"]
    assert json.dumps(book.metadata)
