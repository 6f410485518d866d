"""Sweeps: every point a row, whatever happens to it; killed and taken up again; folders that are others'."""

from __future__ import annotations

import csv
import json
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ascend_sim as sim
from ascend_sim.tuning.space import read_space
from ascend_sim.tuning.store import FILE, Store
from ascend_sim.tuning.sweeps import Result, batches, identity, run_sweep
from ascend_sim.tuning.task import Task, evaluate

TOY = {"chip": "toy"}


def swept(target: str, *space: str, fixed: dict[str, Any] | None = None, **options: Any) -> Result:
    return run_sweep(Task(target, TOY if fixed is None else fixed), read_space(space), **options)


def table(result: Result) -> list[dict[str, Any]]:
    """The rows without what the host decides."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.rows]


def test_every_point_is_what_a_run_says(target: str) -> None:
    result = swept(target, "SIZE=256,1024", "BUFFERS=1,2", workers=2)
    assert [(row["SIZE"], row["BUFFERS"]) for row in result.rows] == [
        (256, 1), (256, 2), (1024, 1), (1024, 2),
    ]  # fmt: skip
    for row in result.rows:
        alone = evaluate(Task(target, TOY), {"SIZE": row["SIZE"], "BUFFERS": row["BUFFERS"]})
        for key in ("status", "cycles", "time_us", "bound_cycles", "limit", "ub_bytes", "gm_read"):
            assert row[key] == alone[key]
        assert row["gm_read"] == row["gm_write"] == 4 * 4096
        live = evaluate(
            Task(target, {**TOY, "checks": "collect", "numerics": "on"}),
            {"SIZE": row["SIZE"], "BUFFERS": row["BUFFERS"]},
        )
        assert all(row[key] == live[key] for key in ("cycles", "gm_read", "gm_write"))
        assert row["bound_cycles"] <= row["cycles"]
        assert row["ub_bytes"] == 8 * row["SIZE"] * row["BUFFERS"]
    assert result.best() == min(result.rows, key=lambda row: row["cycles"])


def test_what_fails_is_a_row_and_the_sweep_goes_on(target: str) -> None:
    result = swept(
        target,
        "MODE=racy,stuck,raises,exits,killed,good",
        "SIZE=256,32768",
        fixed={"chip": "toy", "checks": "collect"},
        workers=2,
    )
    found = {(row["MODE"], row["SIZE"]): (row["status"], row["reason"]) for row in result.rows}
    assert found["good", 256][0] == "ok"
    assert found["good", 32768][0] == "does not fit"
    assert "65536 too many" in found["good", 32768][1] or "bytes of UB" in found["good", 32768][1]
    assert found["racy", 256][0] == "finding"
    assert "RACE" in found["racy", 256][1]
    assert found["stuck", 256][0] == "deadlock"
    assert "MTE2_V id 3" in found["stuck", 256][1]
    assert found["raises", 256] == ("error", "KeyError: 'nothing there'")
    assert found["exits", 256] == ("crash", "its process ended itself with status 7")
    assert found["killed", 256][0] == "crash"
    assert "SIGKILL" in found["killed", 256][1]


def test_points_of_an_operator_and_a_tiling_that_is_refused() -> None:
    task = Task("rope_grad", {"seq": "64", "hidden": "256", "chip": "toy"})
    assert evaluate(task, {"MAX_PROCESS_NUM": 4096})["status"] == "ok"
    assert evaluate(task, {"MAX_PROCESS_NUM": 128})["status"] == "refused"
    large = evaluate(task, {"MAX_PROCESS_NUM": 20000})
    assert large["status"] == "does not fit"
    assert "The largest MAX_PROCESS_NUM that fits" in large["reason"]
    assert evaluate(task, {"hidden": "200"})["status"] == "refused"


def test_the_same_call_again_runs_nothing(target: str) -> None:
    first = swept(target, "SIZE=256,512", workers=1)
    seconds = [row["seconds"] for row in first.rows]
    Path(target).touch()
    again = swept(target, "SIZE=256,512", workers=1)
    assert [row["seconds"] for row in again.rows] == seconds
    more = swept(target, "SIZE=256:1024:256", workers=1)
    assert [row["seconds"] for row in more.rows][:2] == seconds
    assert more.folder == first.folder


def test_a_winner_that_does_less_is_doubted(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A size that does not divide the work, in a program that forgets the rest: fast, and wrong."""
    from ascend_sim.cli.app import app

    def told(values: str) -> str:
        with pytest.raises(SystemExit):
            app(["sweep", target, "--set", f"SIZE={values}", "--chip", "toy", "--workers", "1"])
        return capsys.readouterr().out

    path = Path(target)
    program = path.read_text(encoding="utf-8")
    path.write_text(program.replace("range(0, 4096, n)", "range(0, 4097 - n, n)"), encoding="utf-8")
    assert "it writes 12,288 bytes to GM, other points up to 16,384" in told("512,3072")
    path.write_text(program, encoding="utf-8")
    assert "it writes" not in told("512,3072")


def test_a_data_frame(target: str) -> None:
    frame = sim.sweep(target, {"SIZE": [256, 512]}, fixed=TOY, workers=1)
    assert list(frame["SIZE"]) == [256, 512]
    assert list(frame["status"]) == ["ok", "ok"]
    assert (frame["cycles"] >= frame["bound_cycles"]).all()
    assert list(frame.columns[:4]) == ["SIZE", "status", "reason", "cycles"]


KILLED = """
import sys
from ascend_sim.tuning.space import read_space
from ascend_sim.tuning.sweeps import run_sweep
from ascend_sim.tuning.task import Task
run_sweep(Task("kernels.py", {"chip": "toy"}), read_space(["SIZE=64:2048:64"]), out="out", workers=2)
"""


def _rows(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return int(base.execute("SELECT count(*) FROM points").fetchone()[0])
        finally:
            base.close()
    except sqlite3.OperationalError:
        return 0


@pytest.mark.slow
def test_killed_twenty_times_and_resumed(target: str, tmp_path: Path) -> None:
    whole = swept(target, "SIZE=64:2048:64", out="whole", workers=2)
    generator = random.Random(20)
    path = tmp_path / "out" / FILE
    root = Path(__file__).resolve().parents[2]
    for _ in range(20):
        before = _rows(path)
        wanted = before + generator.randint(0, 2)
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{KILLED}"],
            cwd=tmp_path,
        )
        while process.poll() is None and _rows(path) < wanted:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert _rows(path) >= before
    resumed = swept(target, "SIZE=64:2048:64", out="out", workers=2)
    assert table(resumed) == table(whole)
    assert _rows(path) == len(whole.rows) == 32


def test_other_folders_stay_as_they_are(target: str, tmp_path: Path) -> None:
    swept(target, "SIZE=256", out="mine", workers=1)
    before = (tmp_path / "mine" / FILE).read_bytes()
    for space, fixed, words in (
        (["SIZE=256", "BUFFERS=1"], TOY, "another names"),
        (["SIZE=256"], {"chip": "ascend910b1"}, "another fixed"),
    ):
        with pytest.raises(sim.ConfigError, match=words):
            swept(target, *space, fixed=fixed, out="mine", workers=1)
    base = sqlite3.connect(tmp_path / "mine" / FILE)
    base.execute("UPDATE about SET value = '\"0.0.1\"' WHERE name = 'version'")
    base.commit()
    base.close()
    with pytest.raises(sim.ConfigError, match=r'another version: it has "0.0.1"'):
        swept(target, "SIZE=256", out="mine", workers=1)
    assert len(before) > 0
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(sim.ConfigError, match="holds other files and no sweep"):
        swept(target, "SIZE=256", out="notes", workers=1)
    assert [entry.name for entry in (tmp_path / "notes").iterdir()] == ["a.txt"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / FILE).write_text("no database, really, but long enough to look like one")
    with pytest.raises(sim.ConfigError, match="is no sweep of this simulator"):
        swept(target, "SIZE=256", out="bad", workers=1)
    with pytest.raises(sim.ConfigError, match="is no directory"):
        swept(target, "SIZE=256", out=target, workers=1)


def test_a_changed_program_is_another_sweep(target: str) -> None:
    swept(target, "SIZE=256", out="mine", workers=1)
    with Path(target).open("a") as stream:
        stream.write("\n# changed\n")
    with pytest.raises(sim.ConfigError, match="another source"):
        swept(target, "SIZE=256", out="mine", workers=1)


def test_a_changed_chip_is_refused(target: str, tmp_path: Path) -> None:
    text = "extends: toy\nname: mine\ndescription: of the test\nrevision: {}\n"
    (tmp_path / "mine.yaml").write_text(text.format(1))
    swept(target, "SIZE=256", fixed={"chip": "mine.yaml"}, out="out", workers=1)
    (tmp_path / "mine.yaml").write_text(text.format(2))
    with pytest.raises(sim.ConfigError, match="results of mine in revision 1"):
        swept(target, "SIZE=256", fixed={"chip": "mine.yaml"}, out="out", workers=1)


def test_two_at_once_are_refused(target: str, tmp_path: Path) -> None:
    task, space = Task(target, TOY), read_space(["SIZE=256"])
    with (
        Store(tmp_path / "out", identity(task, space)),
        pytest.raises(sim.ConfigError, match="another sweep is at work"),
    ):
        run_sweep(task, space, out="out", workers=1)


@pytest.mark.parametrize(
    ("space", "fixed", "words"),
    [
        (["SIZ=256"], TOY, "did you mean 'SIZE'"),
        (["chip=ascend910b9"], {}, "ascend910b9"),
        (["chip=toy"], TOY, "fixed at 'toy' and varied too"),
        (["l2=cold,hot"], TOY, "--l2 is 'hot'"),
    ],
)
def test_bad_names(target: str, space: list[str], fixed: dict[str, Any], words: str) -> None:
    with pytest.raises(sim.ConfigError, match=words):
        swept(target, *space, fixed=fixed)
    assert not Path("sweeps").exists()


def test_a_target_that_is_not_there() -> None:
    with pytest.raises(sim.ConfigError, match="did you mean 'rope_grad'"):
        swept("rope_gard", "chip=toy", fixed={})
    with pytest.raises(sim.ConfigError, match="no such file"):
        swept("nothing.py", "chip=toy", fixed={})


def test_points_that_share_a_recording_stay_together() -> None:
    space = read_space(["N=1,2", "chip=toy,ascend910b1", "l2=cold,warm"])
    assert [len(batch) for batch in batches(space.points())] == [4, 4]


def test_the_command(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ascend_sim.cli.app import app

    words = [
        "sweep",
        target,
        "--set",
        "SIZE=256,1024,32768",
        "--set",
        "BUFFERS=1,2",
        "--chip",
        "toy",
    ]
    words += ["--out", "out", "--workers", "1"]
    with pytest.raises(SystemExit) as stop:
        app(words)
    shown = capsys.readouterr()
    assert stop.value.code == 0
    assert shown.err == ""
    assert "time in us: SIZE across, BUFFERS down" in shown.out
    assert "6 points: 4 ok, 2 does not fit" in shown.out
    assert "best: SIZE=1024 BUFFERS=2" in shown.out
    files = {entry.name for entry in Path("out").iterdir()}
    assert files >= {"sweep.sqlite", "sweep.csv", "heatmap.png", "lines.png", "sweep.html"}
    with Path("out/sweep.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["does not fit"] * 2
    with pytest.raises(SystemExit):
        app([*words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert [row["cycles"] for row in printed["rows"][:4]] == [
        int(row["cycles"]) for row in rows[:4]
    ]
    assert "cdn" not in Path("out/sweep.html").read_text(encoding="utf-8").lower()[:2000]
