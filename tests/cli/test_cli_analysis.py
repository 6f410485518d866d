"""`report`, `explain` and `diff`: saved runs from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RUN = ("run", "rope_grad", "--seq", "192", "--hidden", "128", "--numerics", "off", "--quiet")


@pytest.fixture
def two_runs(command):
    assert command(*RUN, "--out", "one").code == 0
    assert (
        command(*RUN, "--set", "MAX_PROCESS_NUM=6144", "--set", "BUFFER_NUM=2", "--out", "two").code
        == 0
    )
    return command


def test_a_report_from_disk_is_the_summary_of_the_run(two_runs) -> None:
    with open("one/summary.json", encoding="utf-8") as stream:  # noqa: PTH123
        summary = json.load(stream)
    assert json.loads(two_runs("report", "one", "--json").out) == summary
    shown = two_runs("report", "one")
    assert shown.code == 0
    assert f"({summary['cycles']:,} cycles" in shown.out


def test_files_can_be_written_anew(two_runs) -> None:
    with open("one/stalls.csv", encoding="utf-8") as stream:  # noqa: PTH123
        before = stream.read()
    with open("one/stalls.csv", "w", encoding="utf-8") as stream:  # noqa: PTH123
        stream.write("")
    assert two_runs("report", "one", "--files").code == 0
    with open("one/stalls.csv", encoding="utf-8") as stream:  # noqa: PTH123
        assert stream.read() == before


def test_a_line_and_a_code_are_explained(two_runs) -> None:
    with open("one/stalls.csv", encoding="utf-8") as stream:  # noqa: PTH123
        row = next(row for row in stream if ",V,flag," in row).split(",")
    found = json.loads(two_runs("explain", "one", "--line", f"kernel.py:{row[5]}", "--json").out)
    assert found["line"].endswith(f"kernel.py:{row[5]}")
    assert two_runs("explain", "one", "--line", f"kernel.py:{row[5]}").out.count("MTE2 sets at")
    assert "more set_flag than wait_flag" in two_runs("explain", "--code", "flag-left-set").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "--code", "flag-left-st"), "did you mean 'flag-left-set'"),
        (("explain", "--code", "race"), "insert-sync-event, race-blocks-raw"),
        (("explain",), "explain what?"),
        (("explain", "--line", "kernel.py:3"), "needs the folder of a run"),
        (("report", "nowhere"), "there is no folder nowhere"),
        (("diff", "here", "there"), "there is no folder here"),
        (("diff", "here", "there", "--fail-on", "totl:+1%"), "did you mean 'total'"),
    ],
)  # fmt: skip
def test_wrong_words_are_told_right_ones(command, words: tuple[str, ...], message: str) -> None:
    result = command(*words)
    assert result.code == 1
    assert message in result.err


def test_a_diff_gates(two_runs) -> None:
    one, two = (json.loads(two_runs("report", name, "--json").out) for name in ("one", "two"))
    change = two["cycles"] - one["cycles"]
    found = json.loads(two_runs("diff", "one", "two", "--json").out)
    assert found["change"] == change == sum(row["change"] for row in found["critical_path"])
    better, worse = ("one", "two") if change > 0 else ("two", "one")
    failed = two_runs("diff", better, worse, "--fail-on", "total:+0.1%")
    assert failed.code == 5
    assert "total went from" in failed.err
    assert two_runs("diff", worse, better, "--fail-on", "total:+0.1%").code == 0
    assert "| pipe | line |" in two_runs("diff", "one", "two", "--markdown").out


def test_a_diff_of_two_operators_says_so_and_is_gated_all_the_same(two_runs) -> None:
    small = (
        "run",
        "laser_attention_grad",
        "--seq",
        "256",
        "--heads",
        "1",
        "--quiet",
        "--out",
        "other",
    )
    assert (
        two_runs(*small, "--numerics", "off", "--checks", "off", "--chip", "ascend910b1").code == 0
    )
    result = two_runs("diff", "one", "other", "--fail-on", "cycles:-99%")
    assert result.code == 5
    assert "rope_grad -> laser_attention_grad" in result.out
    assert "are different kernels that share no source" in result.out
    found = json.loads(two_runs("diff", "one", "other", "--json").out)
    assert found["same_kernel"] is False
    assert sum(row["change"] for row in found["critical_path"]) == found["change"]


def test_what_if_of_a_saved_run_and_of_an_operator(two_runs) -> None:
    saved = json.loads(two_runs("what-if", "one", "--json").out)
    with open("one/what_if.json", encoding="utf-8") as stream:  # noqa: PTH123
        assert json.load(stream) == saved
    assert saved["ideals"][0]["gain"] > 0
    assert json.dumps(saved["ideals"][0]) in Path("one/report.html").read_text(encoding="utf-8")
    words = ("what-if", "rope_grad", "--seq", "192", "--hidden", "128", "--ideal", "mte2,buffer")
    found = json.loads(two_runs(*words, "--json").out)
    alike = {tuple(row["ideal"]): row["gain"] for row in saved["ideals"]}
    assert {("mte2",), ("buffer",)} == {tuple(row["ideal"]) for row in found["ideals"]}
    assert all(row["gain"] == alike[tuple(row["ideal"])] for row in found["ideals"])
    assert "With one resource ideal" in two_runs(*words).out
    assert "did you mean 'mte2'" in two_runs("what-if", "one", "--ideal", "mte22").err
    # A folder with the table may be replaced by a new run.
    assert two_runs(*RUN, "--out", "one").code == 0
