"""The doctor's edits: each cures its kernel when it is written into the source, and none is shown that does not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.doctor.parts import FilePart
from ascend_sim.doctor.search import Doctor
from ascend_sim.doctor.source import Edit, Source, Workshop, key_of
from ascend_sim.errors import Finding
from ascend_sim.stage import rehearsing
from tests.doctor.kit import found_by, load

FLAGS = """
from ascend_sim import asc

E = asc.HardEvent


def kernel(x, z):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 4096, 256)
    for i in range(4):
        if i > 0:
            asc.wait_flag(E.V_MTE2, 0)
        asc.data_copy(a, x_gm[i * 256 :], 256)
        asc.set_flag(E.MTE2_V, 0)
        asc.wait_flag(E.MTE2_V, 0)
        if i > 0:
            asc.wait_flag(E.MTE3_V, 0)
        asc.adds(b, a, 1.0, 256)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(b, b, 2.0, 256)
        if i < 3:
            asc.set_flag(E.V_MTE2, 0)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.data_copy(z_gm[i * 256 :], b, 256)
        if i < 3:
            asc.set_flag(E.MTE3_V, 0)
"""

QUEUES = """
from ascend_sim import asc


def kernel(x, z):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(source, 1, 1024)
    pipe.init_buffer(target, 1, 1024)
    for i in range(4):
        a = source.alloc_tensor(asc.float32)
        asc.data_copy(a, x_gm[i * 256 :], 256)
        source.enque(a)
        a = source.deque(asc.float32)
        b = target.alloc_tensor(asc.float32)
        asc.adds(b, a, 1.0, 256)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(b, b, 2.0, 256)
        source.free_tensor(a)
        target.enque(b)
        b = target.deque(asc.float32)
        asc.data_copy(z_gm[i * 256 :], b, 256)
        target.free_tensor(b)
"""


class Clinic:
    """Writes a kernel, runs it with the doctor listening, tells what is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def load(self, text: str) -> Callable[..., None]:
        self.count += 1
        path = self.folder / f"kernel{self.count}.py"
        return load(text, path).kernel

    def findings(self, kernel: Callable[..., None], doctor: Doctor | None = None) -> list[Finding]:
        x = np.random.default_rng(0).normal(size=1024).astype(np.float32)
        z = np.zeros_like(x)
        found = found_by(doctor, lambda: sim.launch(kernel, x, z, chip="toy"))
        if not found:
            np.testing.assert_array_equal(z, (x + np.float32(1)) * np.float32(2))
        return found

    def cured(self, text: str) -> str:
        """Return the edit that the doctor shows, after it has been written into the file and run."""
        doctor = Doctor()
        kernel = self.load(text)
        found = self.findings(kernel, doctor)
        assert found and len({finding.edit for finding in found}) == 1
        assert doctor.cures, f"no edit after {doctor.trials} trials: {found[0].message}"
        by_hand = Source(kernel.__code__.co_filename).edited(doctor.cures[0])
        assert self.findings(self.load(ast.unparse(by_hand))) == []
        assert self.findings(kernel) != []  # the living function is as it was
        return found[0].edit


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path)


def lines_with(text: str, words: tuple[str, ...]) -> list[int]:
    return [n for n, line in enumerate(text.splitlines()) if any(word in line for word in words)]


@pytest.mark.parametrize("text", [FLAGS, QUEUES])
def test_nothing_to_cure(clinic: Clinic, text: str) -> None:
    doctor = Doctor()
    assert clinic.findings(clinic.load(text), doctor) == []
    assert doctor.trials == 0


SYNC = ("set_flag", "wait_flag", "pipe_barrier")


@pytest.mark.parametrize("line", lines_with(FLAGS, SYNC))
def test_a_flag_or_barrier_that_is_left_out(clinic: Clinic, line: int) -> None:
    lines = FLAGS.splitlines()
    lines[line] = lines[line].replace(lines[line].strip(), "pass")
    assert "add `asc." in clinic.cured("\n".join(lines))


@pytest.mark.parametrize("line", lines_with(QUEUES, ("enque", "= source.deque", "free_tensor")))
def test_a_call_of_a_queue_that_is_left_out(clinic: Clinic, line: int) -> None:
    lines = QUEUES.splitlines()
    del lines[line]
    assert "add `" in clinic.cured("\n".join(lines))


AHEAD = """
from ascend_sim import asc

E = asc.HardEvent


def kernel(x, z):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    both = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 512)
    asc.set_flag(E.MTE3_MTE2, 0)
    asc.set_flag(E.MTE3_MTE2, 1)
    for i in range(4):
        half = i % 2
        a = both[half * 256 :]
        asc.wait_flag(E.MTE3_MTE2, half)
        asc.data_copy(a, x_gm[i * 256 :], 256)
        asc.set_flag(E.MTE2_V, half)
        asc.wait_flag(E.MTE2_V, half)
        asc.adds(a, a, 1.0, 256)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(a, a, 2.0, 256)
        asc.set_flag(E.V_MTE3, half)
        asc.wait_flag(E.V_MTE3, half)
        asc.data_copy(z_gm[i * 256 :], a, 256)
        asc.set_flag(E.MTE3_MTE2, half)
    asc.wait_flag(E.MTE3_MTE2, 0)
    asc.wait_flag(E.MTE3_MTE2, 1)
"""


@pytest.mark.parametrize("line", [11, 12, 27, 28])
def test_flags_raised_before_a_loop_and_taken_behind_it(clinic: Clinic, line: int) -> None:
    """The loop's own calls say `half`, which has no value before it: the flag has its number."""
    lines = AHEAD.splitlines()
    lost = lines[line].strip()
    lines[line] = "    pass"
    place = "before line 14" if "set" in lost else "after the end of what begins on line 14"
    assert clinic.cured("\n".join(lines)).startswith(f"add `{lost}` {place} of ")


def test_a_wait_before_the_loop_that_it_belongs_behind(clinic: Clinic) -> None:
    wait, loop = "    asc.wait_flag(E.MTE3_MTE2, 1)\n", "    for i in range(4):\n"
    wrong = AHEAD.removesuffix(wait).replace(loop, wait + loop)
    assert clinic.cured(wrong) == ("swap lines 14 and 15 of kernel1.py: `for i in range(4):` first")


def test_the_queue_that_a_finding_names_comes_first(clinic: Clinic) -> None:
    """With other queues beside it: its tensor is freed behind its last use, enqued before it is fetched."""
    lines = QUEUES.splitlines()
    free = next(n for n, line in enumerate(lines) if "target.free" in line)
    enque = next(n for n, line in enumerate(lines) if "target.enque" in line)
    doctor = Doctor()
    for line, edit in (
        (free, f"add `target.free_tensor(b)` after line {free} "),
        (enque, f"add `target.enque(b)` before line {enque + 1} "),
    ):
        wrong = "\n".join([*lines[:line], *lines[line + 1 :]])
        assert clinic.findings(clinic.load(wrong), doctor)[0].edit.startswith(edit)
    assert doctor.trials < 12


ONCE = (
    QUEUES.partition("    for i")[0]
    + """    a = source.alloc_tensor(asc.float32)
    asc.data_copy(a, x_gm, 256)
    source.enque(a)
    a = source.deque(asc.float32)
    source.free_tensor(a)
    for i in range(4):
        b = target.alloc_tensor(asc.float32)
        asc.adds(b, a, 1.0, 256)
        target.enque(b)
        b = target.deque(asc.float32)
        asc.data_copy(z_gm[i * 256 :], b, 256)
        target.free_tensor(b)
"""
)


def test_a_tensor_freed_before_the_loop_that_uses_it(clinic: Clinic) -> None:
    doctor = Doctor()
    assert clinic.findings(clinic.load(ONCE), doctor)[0].edit == (
        "move line 17 of kernel1.py (`source.free_tensor(a)`) behind the end of what begins on line 18 "
        "(`for i in range(4):`)"
    )
    assert doctor.trials < 20


def test_a_call_moved_past_a_line_that_is_no_single_call(clinic: Clinic) -> None:
    fetched = "a = source.deque(asc.float32)"
    text = QUEUES.replace(fetched, "a, n = source.deque(asc.float32), i")
    text = text.replace(f"        source.enque(a)\n        {fetched}", "")
    enque, fetch = "        source.enque(a)\n", "        a, n = source.deque(asc.float32), i\n"
    assert clinic.cured(text.replace(enque + fetch, fetch + enque)).startswith("swap lines ")


def test_two_lines_the_wrong_way_round(clinic: Clinic) -> None:
    copy = "        asc.data_copy(a, x_gm[i * 256 :], 256)\n"
    raised = "        asc.set_flag(E.MTE2_V, 0)\n"
    assert clinic.cured(FLAGS.replace(copy + raised, raised + copy)) == (
        "swap lines 16 and 17 of kernel1.py: `asc.data_copy(a, x_gm[i * 256:], 256)` first"
    )


def test_a_tensor_freed_before_its_last_use(clinic: Clinic) -> None:
    free = "        source.free_tensor(a)\n"
    adds = "        asc.adds(b, a, 1.0, 256)\n"
    wrong = QUEUES.replace(free, "").replace(adds, free + adds)
    edit = clinic.cured(wrong)
    assert edit.startswith(("move line 19", "swap lines 19 and 20"))


def test_a_barrier_of_the_wrong_pipe(clinic: Clinic) -> None:
    clinic.cured(FLAGS.replace("PIPE_V)", "PIPE_MTE2)"))


def test_a_wait_for_the_wrong_id(clinic: Clinic) -> None:
    edit = clinic.cured(FLAGS.replace("wait_flag(E.V_MTE3, 0)", "wait_flag(E.V_MTE3, 1)"))
    assert "wait_flag(E.V_MTE3, 0)" in edit


def test_two_faults(clinic: Clinic) -> None:
    lines = FLAGS.splitlines()
    for line in sorted(lines_with(FLAGS, ("pipe_barrier", "wait_flag(E.MTE3_V")), reverse=True):
        lines[line] = lines[line].replace(lines[line].strip(), "pass")
    doctor = Doctor()
    found = clinic.findings(clinic.load("\n".join(lines)), doctor)
    assert found and found[0].edit.count("add `") == 2


def test_an_edit_that_ends_the_run_early_is_no_step_forward(clinic: Clinic) -> None:
    """Without its alloc the queue's tensor has no name: that run has no findings, since it comes to nothing."""
    bound = QUEUES.replace("        source.enque(a)\n        a = source.deque(asc.float32)\n", "")
    plain = bound.replace("        target.enque(b)\n        b = target.deque(asc.float32)\n", "")
    doctor = Doctor()
    found = clinic.findings(clinic.load(plain), doctor)
    assert found and found[0].edit.count("add `") >= 2


def test_no_edit_is_shown_that_does_not_cure(clinic: Clinic) -> None:
    wrong = FLAGS.replace(
        "        asc.adds(b, a, 1.0, 256)\n",
        "        c = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 8192, 256)\n        asc.adds(b, c, 1.0, 256)\n",
    )
    doctor = Doctor()
    found = clinic.findings(
        clinic.load(wrong.replace("asc.pipe_barrier(asc.PipeID.PIPE_V)", "pass")), doctor
    )
    kinds = {finding.kind for finding in found}
    assert "UNINIT" in kinds  # stays: nobody has filled c
    assert all(finding.edit == "" for finding in found if finding.kind == "UNINIT")


def test_edits_of_a_living_function(clinic: Clinic) -> None:
    kernel = clinic.load("def kernel():\n    a = 1\n    b = 2\n    return a, b\n")
    file = kernel.__code__.co_filename
    source = Source(file)
    first, second, last = (
        key_of(one)
        for one in source.tree.body[0].body  # type: ignore[attr-defined]
    )
    workshop = Workshop()
    for edit, expected in (
        (Edit(file, first, "after", "a = 5"), (5, 2)),
        (Edit(file, first, "before", "a = 5"), (1, 2)),
        (Edit(file, last, "replace", "return b"), 2),
        (Edit(file, second, "replace", "b = a"), (1, 1)),
        (Edit(file, last, "drop"), None),
    ):
        with workshop.with_edits((edit,)):
            assert kernel() == expected
        assert kernel() == (1, 2)
    with (
        workshop.with_edits((Edit(file, first, "swap", other=second),)),
    ):
        assert kernel() == (1, 2)
    with workshop.with_edits((Edit(file, first, "move", other=second),)):
        assert kernel() == (1, 2)


def test_what_the_doctor_leaves_behind(clinic: Clinic) -> None:
    """Findings, numbers and time of the launch are those without a doctor."""
    lines: list[str] = FLAGS.replace("asc.pipe_barrier(asc.PipeID.PIPE_V)", "pass").splitlines()
    kernel = clinic.load("\n".join(lines))
    results: list[Any] = []
    for doctor in (None, Doctor()):
        x = np.arange(1024, dtype=np.float32)
        z = np.zeros_like(x)
        with rehearsing(*([] if doctor is None else [doctor.rehearse])):
            run = sim.launch(kernel, x, z, chip="toy")
        results.append((run.cycles, z.tobytes(), [finding.message for finding in run.findings]))
    assert results[0] == results[1]


def test_edits_of_a_statement_that_another_one_took_away(tmp_path: Path) -> None:
    """Two edits that cannot both be made are a ValueError, which a trial takes for no edit at all."""
    path = tmp_path / "kernel.py"
    path.write_text("def kernel():\n    a = 1\n    return a\n", encoding="utf-8")
    drop = Edit(str(path), (2, 4), "drop")
    with pytest.raises(ValueError, match="taken the statement away"):
        Source(str(path)).edited((drop, drop))


def test_nothing_is_added_where_it_would_not_run(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("def kernel(n):\n    asc.add(n)\n    return n\n", encoding="utf-8")
    part = FilePart(Source(str(path)))
    (call,) = part.calls
    assert [(edit.how, edit.line) for _, edit in part.gaps(call.key, most=9)] == [
        ("before", 2),
        ("before", 3),
    ]
