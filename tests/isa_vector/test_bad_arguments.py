"""Whatever the arguments: an IsaFault with a sentence, or the instruction's result. Never another error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from tests.isa_vector.kit import DST, SRC, SRC1, TMP, Bench, junk, local

F16, F32, I16, I32, U32 = asc.float16, asc.float32, asc.int16, asc.int32, asc.uint32
A, B, D, T = (local(place, 1024) for place in (SRC, SRC1, DST, TMP))
H, G, K = (local(place, 2048, F16) for place in (SRC, SRC1, DST))
BITS, BYTES = local(DST, 4096, asc.uint8), local(DST, 4096, asc.int8)
O = local(TMP, 64, U32)  # noqa: E741
GT = asc.CMPMODE.GT
BIN, UN = asc.BinaryRepeatParams(), asc.UnaryRepeatParams()
TWO = asc.MrgSortSrcList(F32, A, B)
ON = [local(SRC + 32 * k, 16, F16) for k in range(16)]
TO = [local(DST + 32 * k, 16, F16) for k in range(16)]
SPR, SCALAR, TENSOR = asc.SelMode

CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (asc.compare, (BITS, A, B, GT, 64)),
    (asc.compare, (BITS, A, B, GT, 64, 2, BIN)),
    (asc.compare, (A, B, GT, 64, BIN)),
    (asc.compare_scalar, (BITS, A, 1.0, GT, 64)),
    (asc.compare_scalar, (BITS, A, 1.0, GT, 64, 2, UN)),
    (asc.get_cmp_mask, (D,)),
    (asc.set_cmp_mask, (A,)),
    (asc.select, (D, local(TMP, 64, asc.uint8), A, B, TENSOR, 64)),
    (asc.select, (D, local(TMP, 64, asc.uint8), A, 1.0, SCALAR, 64, 2, BIN)),
    (asc.select, (D, A, B, 2, BIN, SPR)),
    (asc.whole_reduce_sum, (D, A, 64, 2, 1, 1, 8)),
    (asc.repeat_reduce_sum, (D, A, 2, 64, 1, 1, 1, 8)),
    (asc.whole_reduce_max, (D, A, 64, 2, 1, 1, 8, asc.ReduceOrder.ORDER_ONLY_INDEX)),
    (asc.block_reduce_min, (D, A, 2, 64, 1, 1, 8)),
    (asc.pair_reduce_sum, (D, A, 2, 64, 1, 1, 8)),
    (asc.reduce_sum, (D, A, T, 100)),
    (asc.reduce_sum, (D, A, T, 64, 4, 8)),
    (asc.reduce_max, (D, A, T, 100, True)),
    (asc.reduce_min, (D, A, T, 64, 4, 8, True)),
    (asc.create_vec_index, (D, 0, 100)),
    (asc.create_vec_index, (D, 0, 64, 2, 1, 8)),
    (asc.brcb, (D, A, 2, asc.BrcbRepeatParams())),
    (asc.gather, (D, A, O, 0, 64)),
    (asc.gather, (D, A, O, 0, 64, 1, 8)),
    (asc.gatherb, (D.reinterpret_cast(U32), A.reinterpret_cast(U32), O, 1, asc.GatherRepeatParams())),
    (asc.gather_mask, (D, A, 1, False, 0, asc.GatherMaskParams(1, 2, 8), asc.GatherMaskMode.DEFAULT)),
    (asc.gather_mask, (D, A, O, True, 60, asc.GatherMaskParams(1, 2, 8))),
    (asc.transpose, (K, H)),
    (asc.transpose, (K, H, local(TMP, 8192, asc.uint8), asc.TransposeParamsExt(1, 2, 4, 4, 11))),
    (asc.trans_data_to_5hd, (TO, ON, asc.TransDataTo5HDParams())),
    (asc.sort32, (D, A, O, 1)),
    (asc.mrg_sort, (D, TWO, asc.MrgSort4Info([4, 4], False, 3))),
    (asc.mrg_sort, (D, TWO, [4, 4], [], 3, 1, True)),
    (asc.get_sort_len, (3, F32)),
    (asc.get_acc_val, (F32,)),
    (asc.get_reduce_max_min_count, (F32,)),
    (asc.mul_cast, (BYTES, H, G, 64)),
    (asc.add_relu_cast, (K, A, B, 64, 2, BIN)),
    (asc.set_deq_scale, (1.0,)),
    (asc.set_deq_scale, (1.0, 3, True)),
    (asc.set_deq_scale, (local(TMP, 16, asc.uint64), asc.VdeqInfo([1.0] * 16, [0] * 16, [True] * 16))),
    (asc.cast_deq, (BYTES, local(SRC, 2048, I16), 64, None, None, True, False, True)),
]  # fmt: skip

STRUCTURES: list[tuple[Callable[..., Any], tuple[Any, ...], int, int]] = [
    (asc.compare, (BITS, A, B, GT, 64, 2, asc.BinaryRepeatParams), 6, 6),
    (asc.compare_scalar, (BITS, A, 1.0, GT, 64, 2, asc.UnaryRepeatParams), 6, 4),
    (asc.select, (D, BITS, A, B, TENSOR, 64, 2, asc.BinaryRepeatParams), 7, 6),
    (asc.brcb, (D, A, 2, asc.BrcbRepeatParams), 3, 2),
    (asc.gatherb, (D.reinterpret_cast(U32), A.reinterpret_cast(U32), O, 1, asc.GatherRepeatParams), 4, 2),
    (asc.gather_mask, (D, A, 1, False, 0, asc.GatherMaskParams), 5, 4),
    (asc.gather_mask, (D, A, O, False, 0, asc.GatherMaskParams), 5, 4),
    (asc.transpose, (K, H, local(TMP, 8192, asc.uint8), asc.TransposeParamsExt), 3, 5),
    (asc.trans_data_to_5hd, (TO, ON, asc.TransDataTo5HDParams), 2, 5),
    (asc.mrg_sort, (D, TWO, asc.MrgSort4Info), 2, 4),
    (asc.mul_cast, (BYTES, H, G, 64, 2, asc.BinaryRepeatParams), 5, 6),
    (asc.cast_deq, (BYTES, local(SRC, 2048, I16), 64, 2, asc.UnaryRepeatParams, True, False), 4, 4),
    (asc.set_deq_scale, (local(TMP, 16, asc.uint64), asc.VdeqInfo), 1, 3),
]  # fmt: skip


def fresh() -> Bench:
    bench = Bench(0)
    bench.put(TMP, np.arange(1024, dtype=np.uint32) % 64 * 32)
    with bench.stream:
        asc.set_deq_scale(1.0, 0, True)
    return bench


def attempt(function: Callable[..., Any], arguments: Any) -> None:
    """An IsaFault with a sentence that names the instruction, or success."""
    bench = fresh()
    try:
        with bench.stream:
            function(*arguments)
    except IsaFault as error:
        assert function.__name__ in error.message or function.__name__ == "set_deq_scale", error
        assert len(error.message) > 25


@pytest.mark.parametrize(("function", "arguments"), CALLS)
def test_the_call_itself_is_right(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with fresh().stream:
        function(*arguments)


@pytest.mark.parametrize(("function", "arguments"), CALLS)
@pytest.mark.filterwarnings("error")
def test_one_wrong_argument(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    for position in range(len(arguments)):
        for wrong in junk():
            attempt(function, (*arguments[:position], wrong, *arguments[position + 1 :]))


@pytest.mark.parametrize(("function", "arguments", "position", "fields"), STRUCTURES)
def test_one_wrong_field(
    function: Callable[..., Any], arguments: tuple[Any, ...], position: int, fields: int
) -> None:
    structure = arguments[position]
    for field in range(fields):
        for wrong in junk():
            values = list(structure.__match_args__)
            given = {values[field]: wrong}
            attempt(
                function, (*arguments[:position], structure(**given), *arguments[position + 1 :])
            )


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: asc.compare(BITS, A), "compare: missing a required argument"),
        (lambda: asc.compare(A, B, GT, 64), "this is the form (src0, src1, cmp_mode, mask, repeat_params"),
        (lambda: asc.mrg_sort(D, TWO), "mrg_sort: missing a required argument: 'element_count_list'"),
        (lambda: asc.set_deq_scale(), "set_deq_scale: missing a required argument"),
        (lambda: asc.select(D, BITS, A, B, SPR, 4, what=3), "select: got an unexpected keyword argument 'what'"),
    ],
)  # fmt: skip
def test_forms_that_do_not_exist(call: Any, part: str) -> None:
    with fresh().stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == "form"
    assert part in caught.value.message


@pytest.mark.parametrize(("function", "arguments"), CALLS)
def test_outside_a_kernel(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if function is asc.get_sort_len:
        return
    with pytest.raises(IsaFault, match="outside a kernel"):
        function(*arguments)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(CALLS), st.data())
def test_two_wrong_arguments(call: Any, data: Any) -> None:
    function, arguments = call
    wrong = list(arguments)
    choices = list(junk())
    for _ in range(2):
        place = data.draw(st.integers(0, len(wrong) - 1))
        wrong[place] = choices[data.draw(st.integers(0, len(choices) - 1))]
    attempt(function, wrong)


def test_nothing_happens_on_a_cube_core() -> None:
    from isa.stream import EagerStream
    from isa.types import CoreKind, Space

    stream = EagerStream({Space.L1: 1024}, CoreKind.AIC)
    with stream:
        for function, arguments in CALLS:
            function(*arguments)
    assert stream.issued == []
