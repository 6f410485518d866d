"""Errors: where they point, what they carry, and that they survive SimPy and pickling."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc, errors
from ascend_sim.errors import (
    AlignmentError,
    BoundsError,
    Finding,
    KernelError,
    OperandError,
)
from tests.machine.kit import (
    ALL,
    A,
    C,
    E,
    hand_over,
    instructions,
    kinds,
    line_of,
    local,
    toy_run,
    window,
)

ERRORS = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, Exception) and value.__module__ == errors.__name__
]


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


# ---- every class ----------------------------------------------------------------------------


def test_all_classes_are_looked_at() -> None:
    assert len(ERRORS) >= 14
    assert {error.__name__ for error in ERRORS} >= set(sim.__all__) & set(dir(errors)) - {"Finding"}


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_rebuilt_from_their_args(error: type[Exception]) -> None:
    """SimPy raises a failed event's exception again as type(e)(*e.args)."""
    first = error("what happened\n  and where")
    again = type(first)(*first.args)
    assert str(again) == str(first) == "what happened\n  and where"
    assert again.args == first.args


@pytest.mark.parametrize("error", ERRORS)
def test_errors_survive_pickling_and_copying(error: type[Exception]) -> None:
    first = error("what happened")
    for again in (pickle.loads(pickle.dumps(first)), copy.copy(first)):
        assert type(again) is error
        assert str(again) == "what happened"


@pytest.mark.parametrize("error", [error for error in ERRORS if issubclass(error, KernelError)])
def test_kernel_errors_keep_finding_and_run(error: type[KernelError]) -> None:
    finding = Finding(
        "RACE",
        "race-raw",
        "text",
        "k.py",
        3,
        "core0.aiv0",
        "V",
        "t",
        (0, 32),
        True,
        4,
        [{"line": 1}],
    )
    first = error("what happened", finding, "a run")
    for again in (type(first)(*first.args), pickle.loads(pickle.dumps(first))):
        assert again.finding == finding
        assert again.run == "a run"
    assert error("x").finding.kind in errors.KINDS
    assert error("x").run is None


def test_every_error_has_one_parent() -> None:
    assert all(issubclass(error, errors.AscendSimError) for error in ERRORS)


def test_a_real_error_survives_pickling_without_its_run() -> None:
    """A worker process sends its error home: message and finding arrive."""

    def kernel() -> None:
        asc.adds(local(C, 64), local(A, 64), 1.0, 65)

    with pytest.raises(BoundsError) as caught:
        toy_run(kernel)
    error = caught.value
    message, finding, _ = error.args
    again = pickle.loads(pickle.dumps(type(error)(message, finding)))
    assert str(again) == str(error)
    assert again.finding == error.finding


@pytest.mark.parametrize(
    ("kinds_found", "code"),
    [
        ([], 0),
        (["PERF", "INFO"], 0),
        (["HOST"], 1),
        (["RACE", "INFO"], 2),
        (["HOST", "COVERAGE"], 2),
        (["DEADLOCK", "RACE"], 3),
        (["BOUNDS", "DEADLOCK"], 4),
        (["CAPACITY"], 4),
        (["ALIGNMENT"], 4),
        (["ILLEGAL_PARAM"], 4),
    ],
)
def test_exit_codes(kinds_found: list[str], code: int) -> None:
    assert errors.exit_code([Finding(kind, "x", "y") for kind in kinds_found]) == code


# ---- places ---------------------------------------------------------------------------------


def gm_out_of_bounds(x: asc.GlobalAddress) -> None:
    asc.data_copy(local(A, 64), window(x)[64:], 64)
    asc.data_copy(local(A, 64), window(x)[96:], 64)  # here


def ub_out_of_bounds(x: asc.GlobalAddress) -> None:
    asc.data_copy(local(196608 - 128, 64), window(x), 64)  # here


def tensor_out_of_bounds(x: asc.GlobalAddress) -> None:
    asc.adds(local(C, 64), local(A, 64), 1.0, 65)  # here


def view_out_of_bounds(x: asc.GlobalAddress) -> None:
    local(A, 64)[65:]  # here


def scalar_out_of_bounds(x: asc.GlobalAddress) -> None:
    window(x).get_value(128)  # here


def vector_misaligned(x: asc.GlobalAddress) -> None:
    asc.adds(local(C, 64), local(A, 64)[1:], 1.0, 8)  # here


def copy_misaligned(x: asc.GlobalAddress) -> None:
    asc.data_copy(local(A + 16, 64), window(x), 64)  # here


def gm_misaligned(x: asc.GlobalAddress) -> None:
    tensor = window(x).reinterpret_cast(asc.int8)[2:].reinterpret_cast(asc.float32)
    asc.data_copy(local(A, 64), tensor, 8)  # here


@pytest.mark.parametrize(
    ("kernel", "error", "pipe", "tensor", "bytes_found", "words"),
    [
        (
            gm_out_of_bounds,
            BoundsError,
            "MTE2",
            "x",
            (384, 640),
            "384 to 640 of a GM allocation of 512 bytes: 128",
        ),
        (
            ub_out_of_bounds,
            BoundsError,
            "MTE2",
            "UB[196480:196736]",
            (196480, 196736),
            "128 are outside",
        ),
        (
            tensor_out_of_bounds,
            BoundsError,
            "V",
            "UB[73728:73984]",
            (C, C + 260),
            "260 bytes from its start",
        ),
        (view_out_of_bounds, BoundsError, "", "UB[0:256]", None, "64 elements"),
        (scalar_out_of_bounds, BoundsError, "S", "x", (512, 516), "4 bytes outside"),
        (vector_misaligned, AlignmentError, "V", "UB[4:256]", (4, 256), "4 past a 32-byte border"),
        (
            copy_misaligned,
            AlignmentError,
            "MTE2",
            "UB[16:272]",
            (16, 272),
            "16 past a 32-byte border",
        ),
        (gm_misaligned, AlignmentError, "MTE2", "x", (2, 512), "no multiple of the 4 bytes"),
    ],
)
def test_bounds_and_alignment_name_the_place(
    kernel: Any,
    error: type[KernelError],
    pipe: str,
    tensor: str,
    bytes_found: tuple[int, int] | None,
    words: str,
) -> None:
    with pytest.raises(error) as caught:
        toy_run(kernel, floats(128), cores=3)
    finding = caught.value.finding
    assert finding.kind == ("BOUNDS" if error is BoundsError else "ALIGNMENT")
    assert (finding.file, finding.line) == (__file__, line_of(kernel, "# here"))
    assert (finding.core, finding.pipe, finding.tensor) == ("core0.aiv0", pipe, tensor)
    assert finding.bytes == bytes_found
    message = str(caught.value)
    assert words in message
    place = (
        f"tests/machine/test_errors.py:{line_of(kernel, '# here')} in {kernel.__name__}, core0.aiv0"
    )
    assert place in message
    assert not pipe or f"pipe {pipe}" in message
    assert caught.value.run.exit_code == 4


def test_the_place_is_the_innermost_line_of_the_kernels_own_code() -> None:
    def helper(t: Any) -> None:
        asc.adds(t, t, 1.0, 65)  # inner

    def kernel() -> None:
        helper(local(A, 64))  # outer

    with pytest.raises(OperandError.__mro__[1]) as caught:
        toy_run(kernel)
    assert caught.value.finding.line == line_of(helper, "# inner")


def test_a_call_site_holds_the_whole_stack() -> None:
    def helper(t: Any) -> None:
        asc.duplicate(t, 1.0, 64)  # inner

    def kernel() -> None:
        helper(local(A, 64))  # first
        helper(local(C, 64))  # second

    run = toy_run(kernel)
    stacks = [
        [line for _, line, _ in run.log.sites[item.site].frames] for item in instructions(run, "V")
    ]
    inner = line_of(helper, "# inner")
    assert stacks == [[inner, line_of(kernel, "# first")], [inner, line_of(kernel, "# second")]]


def test_the_core_is_the_one_that_failed() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 65 if asc.get_block_idx() == 3 else 64)

    with pytest.raises(BoundsError) as caught:
        toy_run(kernel, cores=4)
    assert caught.value.finding.core == "core1.aiv1"


def test_the_traceback_ends_in_the_kernel() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 65)  # here

    with pytest.raises(BoundsError) as caught:
        toy_run(kernel)
    places = [(entry.path.name, entry.lineno + 1) for entry in caught.traceback]
    assert ("test_errors.py", line_of(kernel, "# here")) in places


# ---- the state so far -----------------------------------------------------------------------


def test_the_run_so_far() -> None:
    """The kernel's Python runs ahead of the machine: the log ends where the machine was when it was told."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 1024), window(x), 1024)
        hand_over(E.MTE2_V)
        asc.adds(local(C, 1024), local(A, 1024), 1.0, 1024)
        asc.pipe_barrier(ALL)
        asc.adds(local(C, 1024), local(A, 1024), 1.0, 1024)
        asc.adds(local(C, 1024), local(A, 1024), 1.0, 1025)  # here

    with pytest.raises(BoundsError) as caught:
        toy_run(kernel, floats(1024))
    run = caught.value.run
    assert kinds(run) == [("BOUNDS", "tensor-out-of-bounds")]
    assert run.findings[0] is caught.value.finding
    assert run.findings[0].line == line_of(kernel, "# here")
    assert [item.name for item in instructions(run, "MTE2")] == ["data_copy"]
    assert run.cycles >= 321  # PIPE_ALL is over
    for core in run.log.cores:
        assert all(0 <= item.start <= item.end <= run.cycles for item in core.items)
        assert core.end == run.cycles
    summary = run.summary
    assert summary["cycles"] == run.cycles
    assert summary["findings"][0]["kind"] == "BOUNDS"
    assert summary["pipes"]["core0.aiv0"]["MTE2"]["bytes"] == 4096
    assert run.coverage == {}


def test_the_run_so_far_of_several_cores() -> None:
    """One core of three fails late; the others have ended, or are still at it."""

    def kernel(x: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        asc.data_copy(local(A, 1024), window(x)[1024 * block :], 1024)
        hand_over(E.MTE2_V)
        for _ in range(10 * block):
            asc.adds(local(C, 1024), local(A, 1024), 1.0, 1024)
            asc.pipe_barrier(ALL)
        if block == 1:
            asc.adds(local(C, 1024), local(A, 1024), 1.0, 1025)

    with pytest.raises(BoundsError) as caught:
        toy_run(kernel, floats(3072), cores=3)
    run = caught.value.run
    first, second, third = run.log.cores
    assert first.end < second.end == third.end == run.cycles
    assert len(instructions(run, "V", 1)) == 10
    assert 0 < len(instructions(run, "V", 2)) < 20


def test_an_error_in_the_first_line() -> None:
    def kernel() -> None:
        local(A, 64)[65:]

    with pytest.raises(BoundsError) as caught:
        sim.launch(kernel)
    run = caught.value.run
    assert run.cycles == 2387  # the core had just started
    assert run.stalls()["launch"] > 0


def test_a_finding_stops_the_run_where_errors_are_asked() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)  # here
        asc.adds(local(A, 64), local(C, 64), 1.0, 64)

    assert len(toy_run(kernel).findings) == 4  # RAW, then RAW, WAR and WAW
    with pytest.raises(sim.RaceError) as caught:
        toy_run(kernel, checks="error")
    error = caught.value
    assert (error.finding.kind, error.finding.line) == ("RACE", line_of(kernel, "# here"))
    assert error.finding in error.run.findings
    assert str(error).startswith(error.finding.message)
    with pytest.raises(sim.UninitializedRead):
        toy_run(lambda: asc.adds(local(C, 64), local(A, 64), 1.0, 64), checks="error")


def test_the_finding_that_stops_a_run_is_listed_once() -> None:
    def kernel() -> None:
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    with pytest.raises(sim.UninitializedRead) as caught:
        toy_run(kernel, checks="error")
    assert kinds(caught.value.run) == [("UNINIT", "uninitialised-read")]


def test_without_checks_the_kernel_still_may_not_leave_its_tensors() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 65)

    with pytest.raises(BoundsError):
        toy_run(kernel, checks="off")
