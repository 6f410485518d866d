"""shift_right with rounding: the last bit that leaves is added; every int16, int32 at random, all widths."""

from __future__ import annotations

import numpy as np
import pytest
from isa_kit import read, stream, ub, write

from isa.faults import IsaFault
from isa.params import UnaryRepeatParams
from isa.types import DType, int16, int32, uint16, uint32
from isa.vector.shift import shift_right


def shifted(value: int, bits: int) -> int:
    """Return value / 2^bits, half of the last place rounded up: the bit that leaves last is added."""
    return value if bits == 0 else (value >> bits) + (value >> (bits - 1) & 1)


@pytest.mark.parametrize("bits", range(17))
def test_every_int16(bits: int) -> None:
    values = np.arange(-(1 << 15), 1 << 15, dtype=np.int16)
    with stream(size=4 * len(values)) as eager:
        src, dst = ub(int16, 0, len(values)), ub(int16, 2 * len(values), len(values))
        write(eager, src, values)
        shift_right(dst, src, bits, len(values), round_en=True)
        assert read(eager, dst).tolist() == [shifted(int(value), bits) for value in values]


@pytest.mark.parametrize("bits", [0, 1, 7, 30, 31, 32])
def test_int32_masked(bits: int) -> None:
    values = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 128).astype(np.int32)
    with stream() as eager:
        src, dst = ub(int32, 0, 128), ub(int32, 1024, 128)
        write(eager, src, values)
        before = read(eager, dst)
        shift_right(dst, src, bits, 5, 2, UnaryRepeatParams(), round_en=True)
        after = read(eager, dst)
    for lane, value in enumerate(values):
        expected = shifted(int(value), bits) if lane % 64 < 5 else before[lane]
        assert after[lane] == expected


def test_with_and_without_are_different_calls() -> None:
    with stream() as eager:
        src, dst = ub(int16, 0, 16), ub(int16, 64, 16)
        write(eager, src, np.full(16, 3))
        for rounding, expected in ((False, 1), (True, 2), (False, 1)):
            shift_right(dst, src, 1, 16, round_en=rounding)
            assert read(eager, dst)[0] == expected


@pytest.mark.parametrize("dtype", [uint16, uint32])
def test_unsigned_types_do_not_round(dtype: DType) -> None:
    with stream(), pytest.raises(IsaFault, match="True for int16 and int32 only") as caught:
        shift_right(ub(dtype, 256, 16), ub(dtype, 0, 16), 1, 16, round_en=True)
    assert (caught.value.kind, caught.value.code) == ("ILLEGAL_PARAM", "round-en")
