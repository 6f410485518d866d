"""Two runs beside each other: every table adds up to the difference, gates hold, moved lines are matched."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import test_real_runs

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ascend_sim.report.diff import NO_CORE, broken, read_gate
from ascend_sim.report.sources import Lines, line_map
from ascend_sim.report.text_diff import markdown


def test_every_table_adds_up_to_the_difference() -> None:
    one = test_real_runs.launch(chip="toy", tiles=8)
    two = test_real_runs.launch(chip="toy", tiles=8, num=2, blocks=4)
    found = one.diff(two)
    change = two.cycles - one.cycles
    assert found.cycles == (one.cycles, two.cycles)
    assert sum(row.change for row in found.path) == change
    for pipe in ("aiv.S", "aiv.V", "aiv.MTE2", "aiv.MTE3"):
        rows = [row for row in found.pipes if row.key[0] == pipe]
        assert sum(row.change for row in rows) == pytest.approx(change)
    assert found.path[0].change == max((row.change for row in found.path), key=abs)
    buffer = [row for row in found.pipes if row.key[0] == "aiv.MTE2" and row.key[2] == "buffer"]
    assert sum(row.change for row in buffer) < 0
    text = markdown(found)
    assert f"{change:+,}" in text
    assert text.count("| pipe | line |") == 2
    assert found.as_dict()["change"] == change


def other_kernel(x: asc.GlobalAddress) -> None:
    gm = asc.GlobalTensor()
    gm.set_global_buffer(x)
    a = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 1024)
    asc.data_copy(a, gm, 1024)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def test_two_kernels_are_said_to_be_two_and_compared_without_lines() -> None:
    one = test_real_runs.launch(chip="toy", tiles=8)
    two = sim.launch(
        other_kernel, np.zeros(1024, np.float16), chip="toy", kernel_type="AIC_ONLY", name="cube"
    )
    two.sources = dict.fromkeys(two.sources, "something else\n" * 40)  # of another project
    found = one.diff(two)
    assert not found.same_kernel
    change = two.cycles - one.cycles
    assert sum(row.change for row in found.path) == change
    for pipe in {row.key[0] for row in found.pipes}:
        rows = [row for row in found.pipes if row.key[0] == pipe]
        assert sum(row.before for row in rows) == pytest.approx(one.cycles)
        assert sum(row.after for row in rows) == pytest.approx(two.cycles)
    assert {row.key[1] for row in (*found.path, *found.pipes)} == {""}
    assert {row.key[2] for row in found.pipes if row.key[0] == "aic.MTE2" and row.before} == {
        NO_CORE
    }
    text = markdown(found)
    assert "add_tiles -> cube" in text
    assert "add_tiles and cube are different kernels that share no source" in text
    assert "block_dim 6 -> 1" in text
    assert found.as_dict()["same_kernel"] is False
    assert found.as_dict()["launch"]["op"] == ["add_tiles", "cube"]


def test_a_renamed_kernel_of_the_same_file_keeps_its_lines() -> None:
    one = test_real_runs.launch(chip="toy")
    two = test_real_runs.launch(chip="toy", name="renamed")
    found = one.diff(two)
    assert found.same_kernel
    assert found.notes == []
    assert {row.change for row in (*found.path, *found.pipes)} == {0}


def test_what_differs_in_the_launch_is_named() -> None:
    one, two = test_real_runs.launch(chip="toy"), test_real_runs.launch(chip="toy", l2="warm")
    assert one.diff(two).launch == {"l2_start": ("cold", "warm")}
    assert one.diff(two).notes == ["Launched differently: l2_start cold -> warm."]


def test_a_run_does_not_differ_from_itself() -> None:
    run = test_real_runs.launch(chip="toy")
    found = run.diff(test_real_runs.launch(chip="toy"))
    assert {row.change for row in (*found.path, *found.pipes)} == {0}
    assert broken(found, read_gate("total:+0%", nearest)) is None
    assert broken(found, read_gate("total:-1%", nearest)) is not None


@pytest.mark.parametrize(
    ("gate", "fails"),
    [("total:+2%", True), ("total:+1000%", False), ("cycles:+1", True), ("memory:+100000", False),
     ("V:+1%", False), ("gm_read:+0", False)],
)  # fmt: skip
def test_gates(gate: str, fails: bool) -> None:
    two = test_real_runs.launch(chip="toy", tiles=8, num=2)
    one = test_real_runs.launch(chip="toy", tiles=8)
    assert (broken(two.diff(one), read_gate(gate, nearest)) is not None) == fails


@pytest.mark.parametrize(
    ("gate", "message"),
    [("total", r"NAME:\+LIMIT"), ("totl:+2%", "did you mean 'total'"), ("total:two", "NAME")],
)
def test_gates_that_are_none(gate: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_gate(gate, nearest)


def test_lines_that_moved_keep_their_names() -> None:
    old, new = "a\nb\nc\n", "# more\na\nb\nx\nc\n"
    assert line_map(old, new) == {2: 1, 3: 2, 5: 3}
    lines = Lines({"k.py": old}, {"k.py": new})
    assert lines.old("k.py:3") == "k.py:2"
    assert lines.old("k.py:4") == "k.py:4 (new)"
    assert lines.old("other.py:4") == "other.py:4"
    another = Lines({"k.py": old}, {"k.py": "x\ny\nz\n"})  # a file that has the name only
    assert not another.shared
    assert another.old("k.py:1") == "k.py:1 (new)"


def test_a_copy_of_a_file_is_a_version_of_it() -> None:
    """People keep versions as files of their own; libraries that both runs have stay what they are."""
    old = "import asc\ndef k():\n    a\n    b\n    c\n"
    new = "import asc\ndef k():\n    a\n    more\n    b\n    c\n"
    lines = Lines({"k.py": old, "lib.py": "x\n"}, {"k2.py": new, "lib.py": "x\n", "o.py": "q\n"})
    assert lines.renamed == {"k2.py": "k.py"}
    assert lines.old("k2.py:6") == "k.py:5"
    assert lines.old("k2.py:4") == "k2.py:4 (new)"
    assert lines.old("o.py:1") == "o.py:1"
    closest = Lines({"a.py": "1\n2\n3\n4\n", "b.py": "1\n2\n3\n9\n"}, {"c.py": "1\n2\n3\n9\n"})
    assert closest.renamed == {"c.py": "b.py"}
    swapped = Lines({"a.py": "1\n2\n3\n"}, {"a.py": "7\n8\n9\n", "b.py": "1\n2\n3\n"})
    assert swapped.renamed == {"b.py": "a.py"}
    assert swapped.old("a.py:1") == "a.py:1 (new)"


def line_with(run: Any, text: str) -> str:
    (file,) = [name for name in run.sources if name.endswith("test_real_runs.py")]
    lines = run.sources[file].splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line and "find" not in line]
    return f"{file}:{number}"


def test_a_line_is_explained_in_figures_that_add_up() -> None:
    run = test_real_runs.launch(chip="toy", tiles=8, blocks=2)
    line = line_with(run, "b = in_y.deque(x.dtype)")
    found = run.explain(line)
    assert found["instructions"][0] | {"slack": 0} == {
        "name": "wait_flag", "pipe": "V", "count": 16, "bytes": 0, "work": 0, "cores": 2,
        "instruction": False, "slack": 0,
    }  # fmt: skip
    stalls = run.stalls(by=("line",))
    (whole,) = [row["cycles"] for row in stalls if row["line"] == line]
    assert sum(row["cycles"] for row in found["cycles"]) == whole
    enque = line_with(run, "in_y.enque(b)").rpartition(":")[2]
    assert {row["set_line"].rpartition(":")[2] for row in found["waits"]} == {enque}
    spent = [
        sentence for sentence in found["text"] if "cycles on it (2 cores together)" in sentence
    ]
    figures = [int(re.findall(r"spent ([\d,]+)", one)[0].replace(",", "")) for one in spent]
    assert len(figures) > 1 and figures == sorted(figures, reverse=True)
    assert any("MTE2 sets at" in sentence for sentence in found["text"])
    with pytest.raises(ConfigError, match="nearest lines that did"):
        run.explain("test_real_runs.py:1")
    with pytest.raises(ConfigError, match="FILE:N"):
        run.explain("kernel")
