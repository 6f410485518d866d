"""Every instruction once inside the simulator: eager numbers, no findings, times that add up, numerics off as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from isa.instruction import REGISTRY
from isa.stream import EagerStream
from isa.types import Pipe, Space
from tests.isa_vector.kit import local, values
from tests.machine.kit import check_run, line_of, window

E = asc.HardEvent
V = asc.PipeID.PIPE_V
BYTES = 0x10000
"""The kernel loads this much UB, works in it, and stores all of it."""
A, B, T, D = 0, 0x4000, 0x8000, 0xC000

F16, F32, I16, I32, U16, U32 = (
    asc.float16,
    asc.float32,
    asc.int16,
    asc.int32,
    asc.uint16,
    asc.uint32,
)
U8, I8, U64 = asc.uint8, asc.int8, asc.uint64
PARAMS = asc.BinaryRepeatParams()
VDEQ = asc.VdeqInfo([0.5] * 16, [3] * 16, [True] * 16)


def at(address: int, dtype: Any) -> Any:
    return local(address, 0x4000 // dtype.size, dtype)


def barrier() -> None:
    asc.pipe_barrier(V)


def compare() -> None:
    asc.compare(at(D, U8), at(A, F32), at(B, F32), asc.CMPMODE.GE, 1024)
    asc.compare(at(D + 128, U8), at(A, F16), at(B, F16), asc.CMPMODE.LT, 0, 3, PARAMS)


def compare_register() -> None:
    asc.compare(at(A, F32), at(B, F32), asc.CMPMODE.GE, 50, PARAMS)
    barrier()
    asc.get_cmp_mask(at(D, U8))
    barrier()
    asc.set_cmp_mask(at(T, U8))
    barrier()
    asc.reset_mask()
    asc.select(
        at(D + 64, F32), at(A, F32), at(B, F32),
        repeat_times=2, repeat_params=PARAMS, sel_mode=asc.SelMode.VSEL_CMPMASK_SPR,
    )  # fmt: skip


def compare_scalar() -> None:
    asc.compare_scalar(at(D, U8), at(A, F32), 0.5, asc.CMPMODE.NE, 1024)


def select() -> None:
    asc.select(
        at(D, F32), at(T, U8), at(A, F32), at(B, F32), asc.SelMode.VSEL_TENSOR_TENSOR_MODE, 999
    )
    barrier()
    asc.select(at(D, F32), at(T, U8), at(D, F32), -1.0, asc.SelMode.VSEL_TENSOR_SCALAR_MODE, 700)
    barrier()
    asc.select(
        at(D, F16), at(T, U8), at(A, F16), at(B, F16), asc.SelMode.VSEL_CMPMASK_SPR, 5, 2, PARAMS
    )


def reduce_parts() -> None:
    asc.block_reduce_sum(at(D, F32), at(A, F32), 8, 64, 1, 1, 8)
    asc.block_reduce_max(at(D + 0x400, F16), at(A, F16), 8, 128, 1, 1, 8)
    asc.block_reduce_min(at(D + 0x800, F32), at(A, F32), 8, [0xFF00FF], 1, 1, 8)
    asc.pair_reduce_sum(at(D + 0xC00, F32), at(A, F32), 8, 64, 1, 1, 8)


def reduce_whole() -> None:
    asc.whole_reduce_sum(at(D, F32), at(A, F32), 60, 16, 1, 1, 8)
    asc.repeat_reduce_sum(at(D + 0x400, F16), at(A, F16), 16, 100, 1, 1, 1, 8)
    asc.whole_reduce_max(at(D + 0x800, F32), at(A, F32), 64, 16, 1, 1, 8)
    asc.whole_reduce_min(
        at(D + 0xC00, F16), at(A, F16), 64, 16, 1, 1, 8, asc.ReduceOrder.ORDER_ONLY_VALUE
    )


def reduce_count() -> None:
    asc.reduce_sum(at(D, F32), at(A, F32), at(T, F32), 1000)
    asc.reduce_sum(at(D + 32, F16), at(A, F16), at(T, F16), 1000)
    asc.reduce_max(at(D + 64, F32), at(A, F32), at(T, F32), 4000)
    asc.reduce_min(at(D + 96, F16), at(A, F16), at(T + 0x1000, F16), 100)


def reduce_repeats() -> None:
    asc.reduce_sum(at(D, F32), at(B, F32), at(T, F32), 60, 300, 1)
    barrier()
    asc.reduce_max(at(D + 32, F16), at(B, F16), at(T, F16), 128, 300, 1)
    barrier()
    asc.reduce_min(at(D + 64, F32), at(B, F32), at(T, F32), 64, 1, 8)


def reduce_index() -> None:
    asc.reduce_max(at(D, F32), at(A, F32), at(T, F32), 4000, True)
    asc.reduce_min(at(D + 32, F16), at(A, F16), at(T, F16), 3000, True)


def registers() -> None:
    asc.reduce_sum(at(D, F32), at(A, F32), at(T, F32), 100)
    assert isinstance(asc.get_acc_val(), float)
    asc.whole_reduce_max(at(D + 64, F32), at(A, F32), 64, 4, 1, 1, 8)
    asc.get_reduce_max_min_count()


def index() -> None:
    asc.create_vec_index(at(D, I32), 5, 1000)
    asc.create_vec_index(at(D + 0x2000, F16), 5, 100, 3, 1, 8)
    asc.brcb(at(D + 0x3000, F32), at(A, F32), 4, asc.BrcbRepeatParams())


def offsets(step: int) -> None:
    asc.create_vec_index(at(T, I32), 0, 256)
    barrier()
    asc.muls(at(T, I32), at(T, I32), step, 256)
    barrier()


def gather() -> None:
    offsets(8)
    asc.gather(at(D, F32), at(A, F32), at(T, U32), 4, 250)
    asc.gather(at(D + 0x1000, F16), at(A, F16), at(T, U32), 4, 100, 2, 8)


def gatherb() -> None:
    offsets(64)
    asc.gatherb(at(D, U32), at(A, U32), at(T, U32), 8, asc.GatherRepeatParams())


def gather_mask() -> None:
    kept = asc.gather_mask(at(D, F32), at(A, F32), 3, False, 0, asc.GatherMaskParams(1, 8, 8))
    assert kept == 128


def gather_mask_user() -> None:
    kept = asc.gather_mask(
        at(D, F16), at(A, F16), at(T, U16), True, 100, asc.GatherMaskParams(1, 3, 8, 1)
    )
    assert kept == asc.get_gather_mask_remain_count()
    asc.set_flag(E.S_V, 0)  # the count decides what follows
    asc.wait_flag(E.S_V, 0)
    asc.duplicate(at(D + 0x1000, F16), float(kept), 16)


def transpose() -> None:
    asc.transpose(at(D, F16), at(A, F16))
    params = asc.TransposeParamsExt(2, 3, 4, 8, asc.TransposeType.TRANSPOSE_NCHW2NHWC)
    asc.transpose(at(D + 0x1000, F32), at(A, F32), at(T, U8), params)
    barrier()
    asc.duplicate(at(T, F32), 0.0, 4096)  # its content is undefined now


def to_5hd() -> None:
    blocks = [at(A + 0x100 * k, F16) for k in range(16)]
    others = [at(D + 0x100 * ((3 * k) % 16), F16) for k in range(16)]
    asc.trans_data_to_5hd(others, blocks, asc.TransDataTo5HDParams(False, False, 4, 1, 1))


def sort() -> None:
    asc.create_vec_index(at(T, I32), 0, 128)
    barrier()
    asc.sort32(at(T + 0x1000, F32), at(A, F32), at(T, U32), 4)
    barrier()
    lists = [local(T + 0x1000 + 256 * k, 64) for k in range(4)]
    asc.mrg_sort(at(D, F32), asc.MrgSortSrcList(F32, *lists), asc.MrgSort4Info([32] * 4))


def sort_suspended() -> None:
    offsets(1)
    asc.sort32(at(T + 0x1000, F16), at(A, F16), at(T, U32), 2)
    barrier()
    counts: list[int] = []
    lists = [local(T + 0x1000 + 256 * k, 128, F16) for k in range(2)]
    asc.mrg_sort(at(D, F16), asc.MrgSortSrcList(F16, *lists), [32, 32], counts, 3, 1, True)
    assert 32 in counts


def narrowing() -> None:
    asc.mul_cast(at(D, I8), at(A, F16), at(B, F16), 1000)
    asc.add_relu_cast(at(D + 0x1000, F16), at(A, F32), at(B, F32), 1000)
    asc.sub_relu_cast(
        at(D + 0x2000, I8), at(A, F16), at(B, F16), 100, 4, asc.BinaryRepeatParams(1, 1, 1, 4, 8, 8)
    )
    asc.set_deq_scale(0.001)
    asc.add_deq_relu(at(D + 0x3000, F16), at(A, I32), at(B, I32), 512)


def dequantising() -> None:
    asc.set_deq_scale(0.5, 7, True)
    asc.cast_deq(at(D, I8), at(A, I16), 512, is_vec_deq=False)
    asc.set_deq_scale(at(T, U64), VDEQ)
    asc.cast_deq(at(D + 0x1000, I8), at(A, I16), 128, 4, asc.UnaryRepeatParams())


BODIES: dict[Callable[[], None], tuple[str, ...]] = {
    compare: ("compare",),
    compare_register: ("compare", "get_cmp_mask", "set_cmp_mask", "select"),
    compare_scalar: ("compare_scalar",),
    select: ("select",),
    reduce_parts: ("block_reduce_sum", "block_reduce_max", "block_reduce_min", "pair_reduce_sum"),
    reduce_whole: ("whole_reduce_sum", "repeat_reduce_sum", "whole_reduce_max", "whole_reduce_min"),
    reduce_count: ("reduce_sum", "reduce_max", "reduce_min"),
    reduce_repeats: ("reduce_sum", "reduce_max", "reduce_min"),
    reduce_index: ("reduce_max", "reduce_min"),
    registers: ("reduce_sum", "whole_reduce_max"),
    index: ("create_vec_index", "brcb"),
    gather: ("gather",),
    gatherb: ("gatherb",),
    gather_mask: ("gather_mask",),
    gather_mask_user: ("gather_mask",),
    transpose: ("transpose",),
    to_5hd: ("trans_data_to_5hd",),
    sort: ("sort32", "mrg_sort"),
    sort_suspended: ("sort32", "mrg_sort"),
    narrowing: ("mul_cast", "add_relu_cast", "sub_relu_cast", "add_deq_relu"),
    dequantising: ("cast_deq",),
}
NEEDS_VALUES = {registers, gather_mask_user, sort_suspended}
"""Bodies in which the scalar unit reads what V computed."""
MINE = (
    "choose", "compare", "convert", "dequantise", "gather", "gather_mask", "index", "permute", "reduce",
    "reduce_extremes", "reduce_parts", "reduce_sum", "sort",
)  # fmt: skip


def make_kernel(body: Callable[[], None], auto_sync: bool) -> Any:
    @asc.jit(auto_sync=auto_sync)
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        everything = local(0, BYTES, U8)
        asc.data_copy(everything, window(x), BYTES)
        asc.set_flag(E.MTE2_V, 0)
        asc.wait_flag(E.MTE2_V, 0)
        asc.set_flag(E.MTE2_S, 0)
        asc.wait_flag(E.MTE2_S, 0)
        body()
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.data_copy(window(z), everything, BYTES)

    return kernel


def inputs() -> Any:
    data = np.empty(BYTES, np.uint8)
    data[:] = values(np.random.default_rng(7), BYTES // 2, F16).view(np.uint8)
    return data


def eager(body: Callable[[], None]) -> Any:
    stream = EagerStream({Space.UB: 196608})
    stream.memories[Space.UB][:BYTES] = inputs()
    with stream:
        body()
    return stream.memories[Space.UB][:BYTES]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("auto_sync", [False, True])
@pytest.mark.parametrize("chip", ["toy", "ascend910b1"])
def test_numbers_findings_and_times(body: Callable[[], None], auto_sync: bool, chip: str) -> None:
    z = np.zeros(BYTES, np.uint8)
    run = sim.launch(make_kernel(body, auto_sync), inputs(), z, chip=chip)
    assert [finding.message for finding in run.findings] == []
    np.testing.assert_array_equal(z, eager(body))
    check_run(run)
    issued = {item.name for item in run.log.cores[0].items if item.pipe is Pipe.V}
    assert issued >= set(BODIES[body])


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_times_do_not_depend_on_numerics(body: Callable[[], None]) -> None:
    arrays = inputs(), np.zeros(BYTES, np.uint8)
    if body in NEEDS_VALUES:
        with pytest.raises(sim.UnsupportedError, match="numerics"):
            sim.launch(make_kernel(body, False), *arrays, chip="toy", numerics="off")
        return
    timed = sim.launch(make_kernel(body, False), *arrays, chip="toy", numerics="off")
    full = sim.launch(make_kernel(body, False), *arrays, chip="toy")
    assert timed.cycles == full.cycles


def test_every_instruction_is_here() -> None:
    mine = {
        name
        for name, record in REGISTRY.items()
        if record.meaning.__module__.rpartition(".")[2] in MINE
    }
    assert mine == {name for names in BODIES.values() for name in names}


def test_two_cores_do_not_share_registers() -> None:
    """Calls are bound once for all blocks, registers are each block's own."""

    @asc.jit(auto_sync=False)
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        asc.data_copy(local(0, 256), window(x + 256 * block), 256)
        asc.set_flag(E.MTE2_V, 0)
        asc.wait_flag(E.MTE2_V, 0)
        for _ in range(3):
            asc.reduce_sum(local(2048, 8), local(0, 256), local(4096, 64), 256)
        asc.data_copy(window(z + 8 * block), local(2048, 8), 8)

    x = np.arange(1024, dtype=np.float32)
    z = np.zeros(32, np.float32)
    sim.launch(kernel, x, z, cores=4, physical_cores=2, chip="toy", checks="off")
    np.testing.assert_array_equal(z[::8], x.reshape(4, 256).sum(axis=1))


def find(body: Callable[[], None]) -> list[tuple[str, str]]:
    run = sim.launch(make_kernel(body, False), inputs(), np.zeros(BYTES, np.uint8), chip="toy")
    return [(finding.kind, finding.code) for finding in run.findings]


def test_a_register_needs_a_barrier_too() -> None:
    def body() -> None:
        asc.compare(at(A, F32), at(B, F32), asc.CMPMODE.GE, 50, PARAMS)
        asc.get_cmp_mask(at(D, U8))

    run = sim.launch(make_kernel(body, False), inputs(), np.zeros(BYTES, np.uint8), chip="toy")
    (race,) = run.findings
    assert (race.kind, race.code, race.tensor, race.bytes) == ("RACE", "race-raw", "CMPMASK", None)
    assert "get_cmp_mask reads CMPMASK while compare may still be writing it" in race.message
    details = {item.name: item.call.detail() for item in run.log.cores[0].items if item.call}
    assert "dst:CMPMASK," in details["compare"]
    assert "src:CMPMASK" in details["get_cmp_mask"]


def test_what_a_register_holds_is_not_the_end_of_ub() -> None:
    """CMPMASK has been written, the last bytes of UB have not; nor has what a gather's source leaves out."""

    @asc.jit(auto_sync=False)
    def kernel() -> None:
        for place in (0, 512):
            asc.duplicate(local(place, 64), 1.0, 64)
        asc.pipe_barrier(V)
        asc.compare(local(0, 64), local(512, 64), asc.CMPMODE.GE, 64, PARAMS)
        asc.duplicate(local(1024, 8, U32), 0, 8)
        asc.pipe_barrier(V)
        asc.gather(local(1536, 8), local(0, 256), local(1024, 8, U32), 0, 8)
        asc.adds(local(2048, 128), local(512, 128), 1.0, 128)  # half of it
        asc.adds(local(4096, 16), local(196608 - 64, 16), 1.0, 16)  # the end

    run = sim.launch(kernel, chip="toy")
    found = [finding for finding in run.findings if finding.code == "uninitialised-read"]
    assert [finding.line for finding in found] == [
        line_of(kernel, "# half of it"),
        line_of(kernel, "# the end"),
    ]


def test_the_scalar_unit_reads_a_register() -> None:
    def body() -> None:
        asc.whole_reduce_max(at(D, F32), at(A, F32), 64, 1, 1, 1, 8)
        asc.get_reduce_max_min_count(F32)

    run = sim.launch(make_kernel(body, False), inputs(), np.zeros(BYTES, np.uint8), chip="toy")
    read = [item for item in run.log.cores[0].items if item.name == "get_register"]
    assert [item.call.detail() for item in read] == [
        "the extreme value register", "the extreme index register",
    ]  # fmt: skip


def test_a_gather_reads_all_of_its_source() -> None:
    def body() -> None:
        offsets(4)
        asc.muls(at(A, F32)[1000:], at(A, F32)[1000:], 2.0, 8)
        asc.gather(at(D, F32), at(A, F32), at(T, U32), 0, 8)

    assert find(body) == [("RACE", "race-raw")]


def test_a_source_that_is_written_in_part_is_no_finding() -> None:
    @asc.jit(auto_sync=False)
    def kernel(z: asc.GlobalAddress, written: int) -> None:
        asc.create_vec_index(local(0, 16, I32), 0, written)
        asc.create_vec_index(local(512, 16, I32), 0, 16)
        asc.pipe_barrier(V)
        asc.muls(local(512, 16, I32), local(512, 16, I32), 0, 16)
        asc.pipe_barrier(V)
        asc.gather(local(1024, 16, I32), local(0, 16, I32), local(512, 16, U32), 0, 16)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.data_copy(window(z), local(1024, 16, I32), 16)

    z = np.zeros(16, np.int32)
    assert sim.launch(kernel, z, 8, chip="toy").findings == []
    run = sim.launch(kernel, z, 0, chip="toy")
    assert [finding.code for finding in run.findings] == ["uninitialised-read"]


def test_an_offset_outside_stops_the_kernel() -> None:
    def body() -> None:
        offsets(4)
        asc.gather(local(D, 256), local(A, 100), at(T, U32), 0, 256)

    with pytest.raises(sim.BoundsError, match="number 100 is 400 bytes") as caught:
        find(body)
    finding = caught.value.finding
    assert (finding.kind, finding.code, finding.core, finding.pipe) == (
        "BOUNDS",
        "gather-out-of-bounds",
        "core0.aiv0",
        "V",
    )
    assert (finding.tensor, finding.bytes) == ("UB[0:400]", (400, 404))
    assert finding.file == __file__
    assert finding.line == line_of(body, "asc.gather(")


def test_reduce_sum_waits_for_v_and_lets_others_wait() -> None:
    run = sim.launch(
        make_kernel(reduce_count, False), inputs(), np.zeros(BYTES, np.uint8), chip="toy"
    )
    items = run.log.cores[0].items
    first = next(item for item in items if item.name == "reduce_sum")
    store = next(item for item in items if item.name == "set_value")
    assert store.start >= first.end
    after = [(item.name, item.event) for item in items[items.index(store) + 1 :]][:4]
    assert after == [
        ("set_flag", E.S_V), ("wait_flag", E.S_V), ("set_flag", E.S_MTE3), ("wait_flag", E.S_MTE3),
    ]  # fmt: skip


def test_rounds_in_place_are_ordered() -> None:
    """More than 255 repeats of the work buffer itself: instructions of one round read what the next ones write."""

    def body() -> None:
        asc.reduce_sum(at(D, F32), at(A, F32), local(BYTES, 17408), 64, 17000, 0)
        asc.pipe_barrier(V)
        asc.reduce_max(at(D + 32, F32), at(A, F32), local(BYTES, 16640), 64, 8300, 0)

    assert find(body) == []
