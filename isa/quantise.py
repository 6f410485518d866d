"""What fixpipe does to numbers: 16-bit rounding, scales, 8-bit quantisation, relu.

Rules (pyasc's fixpipe page, where it says; else nearest even): a float32 scale counts with 10 mantissa bits; F322F16
and F322BF16 round to nearest even and overflow to infinity; DEQF16 saturates at ±65504; 8-bit results are scale · x
rounded to nearest even, plus the offset, saturated to the destination's type. Products are rounded once. relu acts on
the scaled value, before the offset.
"""

from __future__ import annotations

import numpy as np

from isa.cube_forms import Array, blocks
from isa.cube_params import SCALE_MASK, QuantModes
from isa.types import DType, bfloat16, float16, float32, int8, int32, uint8

GROUP_COLUMNS = 16
"""Columns of one group of L0C."""

QUANT_TYPES: dict[QuantModes, tuple[DType, tuple[DType, ...]]] = {
    QuantModes.F322F16: (float32, (float16,)),
    QuantModes.F322BF16: (float32, (bfloat16,)),
    QuantModes.DEQF16: (int32, (float16,)),
    QuantModes.VDEQF16: (int32, (float16,)),
    QuantModes.QF322B8_PRE: (float32, (int8, uint8)),
    QuantModes.VQF322B8_PRE: (float32, (int8, uint8)),
    QuantModes.REQ8: (int32, (int8, uint8)),
    QuantModes.VREQ8: (int32, (int8, uint8)),
}
"""Type in L0C and types that arrive, by mode; NoQuant keeps float32 or int32."""

VECTOR_MODES = (QuantModes.VDEQF16, QuantModes.VQF322B8_PRE, QuantModes.VREQ8)
SCALAR_MODES = (QuantModes.DEQF16, QuantModes.QF322B8_PRE, QuantModes.REQ8)


class Conversion:
    """What one fixpipe does to the values: convert, relu, lay out. `width` 0 means rows."""

    __slots__ = ("columns", "dtype", "mode", "relu", "scalar", "width")

    def __init__(
        self, mode: QuantModes, dtype: DType, relu: bool, scalar: int, columns: int, width: int
    ) -> None:
        self.mode, self.dtype, self.relu = mode, dtype, relu
        self.scalar, self.columns, self.width = scalar, columns, width

    def __call__(self, src: Array, words: Array = None) -> Array:
        """Return what arrives, from (matrices, groups, rows, 16) values of L0C and one parameter a column."""
        matrices, groups, rows, _ = src.shape
        values = src.transpose(0, 2, 1, 3).reshape(matrices, rows, groups * GROUP_COLUMNS)
        values = values[:, :, : self.columns]
        with np.errstate(all="ignore"):
            values = self._convert(values, words)
        if self.width == 0:
            return values
        padded = blocks(self.columns, self.width) * self.width
        result = np.zeros((rows, padded), self.dtype.numpy)
        result[:, : self.columns] = values[0]
        return result.reshape(rows, padded // self.width, self.width).transpose(1, 0, 2)

    def _convert(self, values: Array, words: Array) -> Array:
        mode = self.mode
        if mode in (QuantModes.NoQuant, QuantModes.F322F16, QuantModes.F322BF16):
            if self.relu:
                values = np.where(values < 0, values.dtype.type(0), values)
            return values.astype(self.dtype.numpy)
        if words is None:
            words = np.array([self.scalar], np.uint64)
        scaled = values.astype(np.float64) * scale_of(words)
        if self.relu:
            scaled = np.where(scaled < 0, 0.0, scaled)
        if self.dtype is float16:
            return np.clip(scaled, -65504.0, 65504.0).astype(np.float16)
        limits = np.iinfo(self.dtype.numpy)
        rounded = np.rint(np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9)) + offset_of(
            words
        )
        return np.clip(rounded, limits.min, limits.max).astype(self.dtype.numpy)


def scale_of(words: Array) -> Array:
    """Return the scales in quantisation parameters: float32 with the low 13 bits cleared, as float64."""
    low = (words & np.uint64(SCALE_MASK)).astype(np.uint32)
    return low.view(np.float32).astype(np.float64)


def offset_of(words: Array) -> Array:
    """Return the offsets in quantisation parameters: 9 bits with a sign, from bit 37."""
    field = ((words >> np.uint64(37)) & np.uint64(0x1FF)).astype(np.int64)
    return np.where(field >= 256, field - 512, field)
