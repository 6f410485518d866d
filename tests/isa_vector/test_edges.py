"""Corners of single instructions: nothing to do, many repeats, forms by position."""

from __future__ import annotations

import numpy as np
import pytest

from ascend_sim import asc
from isa.faults import IsaFault
from tests.isa_vector.kit import DST, SRC, SRC1, TMP, Bench, local, whole

F32, F16, U32 = asc.float32, asc.float16, asc.uint32


def test_select_by_register_with_positions_only() -> None:
    first, second = Bench(1), Bench(1)
    for bench in (first, second):
        bench.run(asc.set_cmp_mask, whole(TMP, F32))
    sources = (whole(DST, F32), whole(SRC, F32), whole(SRC1, F32))
    params = asc.BinaryRepeatParams()
    mode = asc.SelMode.VSEL_CMPMASK_SPR
    first.run(asc.select, *sources, 2, params, mode)
    second.run(asc.select, *sources, repeat_times=2, repeat_params=params, sel_mode=mode)
    np.testing.assert_array_equal(first.ub, second.ub)
    bits = whole(TMP, asc.uint8)
    first.run(asc.select, whole(DST, F32), bits, whole(SRC, F32), 2, params)
    second.run(
        asc.select, whole(DST, F32), bits, whole(SRC, F32), repeat_times=2, repeat_params=params
    )
    np.testing.assert_array_equal(first.ub, second.ub)


def test_nothing_to_do() -> None:
    """A count or repeat of 0, or a mask of 0, changes nothing."""
    bench = Bench(2)
    a, b, d, t = (whole(place, F32) for place in (SRC, SRC1, DST, TMP))
    h = whole(DST, F16)
    with bench.stream:
        asc.set_deq_scale(1.0)
        asc.reduce_sum(d, a, t, 0)
        asc.reduce_sum(d, a, t, 0, 4, 8)
        asc.reduce_max(d, a, t, 0)
        asc.reduce_min(d, a, t, 64, 0, 8)
        asc.whole_reduce_max(d, a, [0], 4, 1, 1, 8)
        asc.block_reduce_sum(d, a, 4, 0, 1, 1, 8)
        asc.compare(a, b, asc.CMPMODE.LT, 0, asc.BinaryRepeatParams())
        asc.select(d, whole(TMP, asc.uint8), a, b, asc.SelMode.VSEL_TENSOR_TENSOR_MODE, 0)
        asc.gather(d, a, whole(TMP, U32), 0, 0)
        asc.gather_mask(d, a, 1, False, 0, asc.GatherMaskParams(1, 0))
        asc.gather_mask(d, a, whole(TMP, U32), False, 0, asc.GatherMaskParams(1, 0))
        asc.sort32(d, a, whole(TMP, U32), 0)
        asc.mrg_sort(d, asc.MrgSortSrcList(F32, a, b), asc.MrgSort4Info([0, 0], False, 3))
        asc.cast_deq(h, whole(SRC, asc.int32), 0)
    bench.check()
    assert all(call.writes == () for call in bench.stream.issued)


@pytest.mark.parametrize("function", [asc.reduce_max, asc.reduce_min])
def test_extremes_of_many_repeats(function: object) -> None:
    """More repeats than one instruction takes, in the first round and in a later one."""
    count = 64 * 9000
    data = np.random.default_rng(3).standard_normal(count).astype(np.float32)
    src, tmp, dst = local(1 << 21, count), local(8192, 65536), local(0, 8)
    bench = Bench(3, size=1 << 23)
    bench.put(1 << 21, data)
    bench.run(function, dst, src, tmp, count, True)  # type: ignore[arg-type]
    want = data.max() if function is asc.reduce_max else data.min()
    at = data.argmax() if function is asc.reduce_max else data.argmin()
    assert bench.ub[:4].view(np.float32)[0] == want
    assert bench.ub[4:8].view(np.uint32)[0] == at
    bench.run(function, dst, src, tmp, count)  # type: ignore[arg-type]
    assert bench.ub[:4].view(np.float32)[0] == want


def test_sums_of_many_repeats() -> None:
    """Rounds in the work buffer of more than 255 repeats, with a barrier between instructions in place."""
    bench = Bench(4, size=1 << 23)
    repeats = 64 * 300 + 5
    data = bench.rng.integers(-9, 9, 64 * repeats).astype(np.float32)  # sums are exact
    bench.put(1 << 21, data)
    src = local(1 << 21, data.size)
    bench.run(asc.reduce_sum, local(0, 8), src, local(8192, 19208), 64, repeats, 8)
    assert bench.ub[:4].view(np.float32)[0] == data.sum()


def test_a_repeat_stride_of_zero() -> None:
    bench = Bench(5)
    place = (whole(DST, U32), whole(SRC, U32), whole(TMP, U32))
    with bench.stream, pytest.raises(IsaFault, match="gatherb: dst_rep_stride 0"):
        asc.gatherb(*place, 2, asc.GatherRepeatParams(1, 0))


def test_merge_past_the_end_of_ub() -> None:
    bench = Bench(6)
    start = 65536 - 4 * 800
    lists = [local(start + 800 * k, 200) for k in range(4)]
    source = asc.MrgSortSrcList(F32, *lists)
    with bench.stream, pytest.raises(IsaFault, match="the lists of all repeats reach"):
        asc.mrg_sort(local(0, 8192), source, asc.MrgSort4Info([100] * 4, False, 15, 2))


def test_registers_on_a_cube_core() -> None:
    from isa.stream import EagerStream
    from isa.types import CoreKind, Space

    with EagerStream({Space.L1: 64}, CoreKind.AIC):
        assert asc.get_mrg_sort_result() == (0, 0, 0, 0)
        assert asc.get_gather_mask_remain_count() == 0
        assert asc.get_acc_val() == 0.0
