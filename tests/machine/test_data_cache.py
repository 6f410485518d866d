"""Scalar accesses to GM go through a data cache of 64-byte lines: what others do not see, and what it does not see."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import OperandError
from ascend_sim.run import Run
from tests.machine.kit import A, C, E, hand_over, items, line_of, local, toy_run, window

MIX = {"kernel_type": "MIX_AIC_1_2"}
LINE, WHOLE = asc.CacheLine.SINGLE_CACHE_LINE, asc.CacheLine.ENTIRE_DATA_CACHE
MTE2, MTE3 = asc.PipeID.PIPE_MTE2, asc.PipeID.PIPE_MTE3
N = 16
"""float32 of one line."""


def coherence(run: Run) -> list[str]:
    """The codes of all findings but unwritten outputs."""
    return sorted(finding.code for finding in run.findings if finding.kind != "COVERAGE")


def clean(tensor: asc.GlobalTensor, how: asc.CacheLine = LINE) -> None:
    asc.data_cache_clean_and_invalid(how, asc.DcciDst.CACHELINE_OUT, tensor)


# ---- one core -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, LINE, WHOLE])
def test_a_read_of_a_line_that_came_in_before_a_store(how: asc.CacheLine | None) -> None:
    seen = []

    def kernel(z: asc.GlobalAddress) -> None:
        seen.append(window(z).get_value(3))
        asc.duplicate(local(A, N), 7.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)  # store
        hand_over(E.MTE3_S)
        if how is not None:
            clean(window(z), how)
        seen.append(window(z).get_value(3))  # read

    run = toy_run(kernel, np.full(N, 5, np.float32))
    assert seen == [5, 7 if how is not None else 5]
    if how is not None:
        assert run.findings == []
        return
    (finding,) = run.findings
    assert (finding.kind, finding.code) == ("COHERENCE", "cache-stale-read")
    assert (finding.line, finding.tensor, finding.bytes) == (
        line_of(kernel, "# read"),
        "z",
        (12, 16),
    )
    assert f"test_data_cache.py:{line_of(kernel, '# store')}" in finding.message
    assert "put data_cache_clean_and_invalid(" in finding.message
    assert run.exit_code == 2


def test_a_first_read_finds_what_there_is() -> None:
    seen = []

    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, N), 7.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)
        hand_over(E.MTE3_S)
        seen.append(window(z).get_value(3))

    run = toy_run(kernel, np.zeros(N, np.float32))
    assert (seen, run.findings) == ([7], [])


def test_a_read_without_a_flag_is_a_race_and_no_more() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        window(z).get_value(3)
        asc.duplicate(local(A, N), 7.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)
        window(z).get_value(3)

    assert coherence(toy_run(kernel, np.zeros(N, np.float32))) == ["race-raw"]


@pytest.mark.parametrize(("flag", "cleaned"), list(product((True, False), repeat=2)))
def test_a_load_of_what_the_scalar_unit_stored(flag: bool, cleaned: bool) -> None:
    """The copy engine reads GM itself. Cleaning waits, so it orders what comes after it as well."""

    def kernel(z: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        for i in range(N):
            window(z).set_value(i, 3.0)  # store
        if cleaned:
            clean(window(z))
        if flag:
            hand_over(E.S_MTE2)
        asc.data_copy(local(A, N), window(z), N)  # load
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(y), local(A, N), N)

    y = np.zeros(N, np.float32)
    run = toy_run(kernel, np.ones(N, np.float32), y)
    if cleaned:
        assert run.findings == []
        assert (y == 3).all()
        return
    assert (y == 1).all()
    assert coherence(run) == (["cache-store-kept"] if flag else ["race-raw"])
    (finding,) = run.findings
    assert finding.line == line_of(kernel, "# load")
    assert f"test_data_cache.py:{line_of(kernel, '# store')}" in finding.message


def test_a_store_beside_a_dirty_word() -> None:
    """The line goes back after the store and takes what it read before it along."""

    def kernel(z: asc.GlobalAddress, cleaned: bool) -> None:
        window(z).set_value(0, 3.0)
        if cleaned:
            clean(window(z))
        asc.duplicate(local(A, 8), 7.0, 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[8:], local(A, 8), 8)

    z = np.ones(N, np.float32)
    assert coherence(toy_run(kernel, z, True)) == []
    assert z.tolist() == [3.0] + [1.0] * 7 + [7.0] * 8
    z = np.ones(N, np.float32)
    assert coherence(toy_run(kernel, z, False)) == ["cache-line-shared"]
    assert z.tolist() == [3.0] + [1.0] * 15  # what the hardware may leave


def test_words_go_back_when_the_kernel_ends() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        for i in range(40):
            window(z).set_value(i, float(i))

    z = np.zeros(40, np.float32)
    run = toy_run(kernel, z)
    assert z.tolist() == list(range(40))
    assert run.findings == []


def test_a_single_line_is_one_line() -> None:
    """Cleaning one line leaves the next one as it is."""
    seen = []

    def kernel(z: asc.GlobalAddress) -> None:
        for i in (0, N):
            window(z).get_value(i)
        asc.duplicate(local(A, 2 * N), 7.0, 2 * N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, 2 * N), 2 * N)
        hand_over(E.MTE3_S)
        clean(window(z)[3:])
        seen.extend(window(z).get_value(i) for i in (0, N))

    run = toy_run(kernel, np.ones(2 * N, np.float32))
    assert seen == [7, 1]
    assert coherence(run) == ["cache-stale-read"]


def test_preloading_brings_a_line_in() -> None:
    seen = []

    def kernel(z: asc.GlobalAddress) -> None:
        words = asc.GlobalTensor()
        words.set_global_buffer(z)
        asc.data_cache_preload(words, 0)
        asc.duplicate(local(A, N), 7.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(words, local(A, N), N)
        hand_over(E.MTE3_S)
        seen.append(words.get_value(3))

    run = toy_run(kernel, np.ones(N, np.float32))
    assert (seen, coherence(run)) == ([1], ["cache-stale-read"])


# ---- several cores --------------------------------------------------------------------------


@pytest.mark.parametrize(("cleaned", "touched", "fresh"), list(product((True, False), repeat=3)))
def test_a_word_from_one_vector_core_to_the_other(
    cleaned: bool, touched: bool, fresh: bool
) -> None:
    """The one that writes has to clean its line, the one that reads to drop a line that it had before."""
    seen = []

    def kernel(z: asc.GlobalAddress) -> None:
        if asc.ascend_is_aic():
            return
        first = asc.get_sub_block_idx() == 0
        if first:
            window(z).set_value(2, 9.0)  # store
            if cleaned:
                clean(window(z))
        elif touched:
            window(z).get_value(5)
        hand_over(E.S_MTE3)
        asc.cross_core_set_flag(1, 1, MTE3)
        asc.cross_core_wait_flag(1, 1, MTE3)
        if not first:
            if fresh:
                clean(window(z))
            seen.append(window(z).get_value(2))  # read
        asc.cross_core_set_flag(2, 1, MTE3)  # till here the lines of the first one need not go back
        asc.cross_core_wait_flag(2, 1, MTE3)

    run = toy_run(kernel, np.ones(N, np.float32), **MIX)
    good = cleaned and (fresh or not touched)
    assert (run.findings == []) is good
    assert seen == [9 if good else 1]
    if not good:
        (finding,) = run.findings
        assert finding.code == ("cache-stale-read" if cleaned else "cache-store-kept")
        assert finding.line == line_of(kernel, "# read")
        assert f"test_data_cache.py:{line_of(kernel, '# store')}" in finding.message


@pytest.mark.parametrize("apart", [1, 8, 15, 16, 24])
def test_words_of_several_blocks_in_one_line(apart: int) -> None:
    """Each core takes the whole line back, and with it what it found of the others' words."""

    def kernel(z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        window(z).set_value(apart * block, block + 1.0)  # store

    z = np.zeros(3 * apart + 1, np.float32)
    run = toy_run(kernel, z, cores=4)
    if apart >= 16:
        assert coherence(run) == []
        assert z[::apart].tolist() == [1, 2, 3, 4]
        return
    assert set(coherence(run)) == {"cache-line-shared"}
    finding = next(finding for finding in run.findings if finding.kind == "COHERENCE")
    assert finding.line == line_of(kernel, "# store")
    assert "lines go back whole" in finding.message
    if apart < 15:
        assert z[::apart].tolist() != [1, 2, 3, 4]


def test_words_of_one_line_in_turn() -> None:
    """Taking turns with flags, and cleaning each time, they may share a line."""

    def kernel(z: asc.GlobalAddress, cleaned: bool) -> None:
        if asc.ascend_is_aic():
            return
        if asc.get_sub_block_idx() == 0:
            window(z).set_value(0, 1.0)
            if cleaned:
                clean(window(z))
        hand_over(E.S_MTE3)
        asc.cross_core_set_flag(1, 1, MTE3)
        asc.cross_core_wait_flag(1, 1, MTE3)
        if asc.get_sub_block_idx() == 1:
            window(z).set_value(1, 2.0)

    z = np.zeros(N, np.float32)
    assert coherence(toy_run(kernel, z, True, **MIX)) == []
    assert z[:2].tolist() == [1, 2]
    assert coherence(toy_run(kernel, np.zeros(N, np.float32), False, **MIX)) == [
        "cache-line-shared"
    ]


def test_the_tiling_that_all_read_is_silent() -> None:
    def kernel(t: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        words = asc.GlobalTensor()
        words.set_global_buffer(t)
        count = words.get_value(1)
        asc.duplicate(local(A, count), 1.0, count)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[count * asc.get_block_idx() :], local(A, count), count)
        hand_over(E.MTE3_S)
        words.get_value(0)

    assert toy_run(kernel, np.array([1, N]), np.zeros(4 * N, np.float32), cores=4).findings == []


# ---- what it costs, and what it takes -------------------------------------------------------


def test_a_dirty_line_takes_as_long_as_a_store() -> None:
    """A miss is read from HBM in 200 cycles, a hit takes 3, a clean line 3, a dirty one the 100 of a store."""

    def kernel(z: asc.GlobalAddress) -> None:
        window(z).set_value(0, 1.0)
        clean(window(z))
        clean(window(z))
        window(z).get_value(0)

    run = toy_run(kernel, np.zeros(N, np.float32))
    spent = [(item.name, item.end - item.start) for item in items(run, "S")]
    again = spent.pop()
    assert spent == [
        ("set_value", 200),
        ("data_cache_clean_and_invalid", 100),
        ("data_cache_clean_and_invalid", spent[2][1]),
    ]
    assert spent[2][1] < 10 < again[1]  # the line has been dropped


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda z: asc.data_cache_clean_and_invalid(0, z), "must be a CacheLine"),
        (lambda z: asc.data_cache_clean_and_invalid(LINE, local(A, 8)), "bound GlobalTensor"),
        (
            lambda z: asc.data_cache_clean_and_invalid(LINE, asc.GlobalTensor()),
            "bound GlobalTensor",
        ),
        (
            lambda z: asc.data_cache_clean_and_invalid(LINE, z, asc.DcciDst.CACHELINE_ATOMIC),
            "CACHELINE_OUT or CACHELINE_ALL",
        ),
        (lambda z: asc.data_sync_barrier(asc.MemDsbT.SEQ), "reserved"),
        (lambda z: asc.data_sync_barrier(1.5), "must be a MemDsbT"),
    ],
)
def test_arguments_that_there_are_not(call: Any, text: str) -> None:
    with pytest.raises(OperandError, match=text):
        toy_run(lambda z: call(window(z)), np.zeros(8, np.float32))


# ---- data_sync_barrier ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "stored", "loaded"),
    [
        (asc.MemDsbT.ALL, True, True),
        (asc.MemDsbT.DDR, True, False),
        (asc.MemDsbT.UB, True, True),
        (None, False, False),
    ],
)
def test_a_barrier_of_memory(memory: asc.MemDsbT | None, stored: bool, loaded: bool) -> None:
    """DDR waits for what reaches GM, so not for V."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, of_v: bool) -> None:
        asc.duplicate(local(A, N), 7.0, N)
        if of_v:
            if memory is not None:
                asc.data_sync_barrier(memory)
            asc.data_copy(window(z), local(A, N), N)
            return
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)
        if memory is not None:
            asc.data_sync_barrier(memory)
        asc.data_copy(local(C, N), window(z), N)

    x, z = np.zeros(N, np.float32), np.zeros(N, np.float32)
    for of_v, fine in ((False, stored), (True, loaded)):
        assert coherence(toy_run(kernel, x, z, of_v)) == ([] if fine else ["race-raw"])
