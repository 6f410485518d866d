"""16-bit floats to float32 and back: the host's conversion instructions where NumKong is installed, else numpy's loops.

numpy converts float16 bit by bit, which takes ten times as long as the arithmetic. Every way gives the same bits; NaN
keeps its payload in `narrow` (left to numpy and ml_dtypes) and may turn quiet in `widen`, which no arithmetic shows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.types import DType, bfloat16, float16

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any
numkong: Any
try:
    numkong = importlib.import_module("numkong")
except ImportError:  # no wheel for this machine
    numkong = None

_FEW = 48
"""Below so many elements numpy's own loop is over before a call of the other library is."""
_FEW_BFLOAT16 = 256

_WIDE: NDArray[np.float32] = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
"""float32 value of every float16 bit pattern: without the library a table look-up is the fastest way."""


def has_fast_conversions() -> bool:
    """Return whether the host's conversion instructions are used."""
    return numkong is not None


def widen(values: Array) -> Array:
    """Return float16 or bfloat16 values as float32, exactly; other types unchanged."""
    if values.dtype == np.float16:
        if values.size < _FEW:
            return values.astype(np.float32)
        if numkong is None:
            return np.take(_WIDE, values.view(np.uint16), mode="clip")
        result = np.empty(values.shape, np.float32)
        numkong.astype(np.ascontiguousarray(values), "float32", out=result)
        return result
    if values.dtype == bfloat16.numpy:
        return values.astype(np.float32)
    return values


def narrow(values: NDArray[np.float32], dtype: DType) -> Array:
    """Round float32 values to float16 or bfloat16, nearest even; overflow gives infinity, NaN keeps its payload."""
    if numkong is None or values.size < _FEW or values.dtype != np.float32:
        return values.astype(dtype.numpy)
    if dtype is float16:
        if np.isnan(values.max()):
            return values.astype(np.float16)
        result = np.empty(values.shape, np.float16)
        numkong.astype(np.ascontiguousarray(values), "float16", out=result)
        return result
    if values.size < _FEW_BFLOAT16 or np.isnan(values.max()):
        return values.astype(dtype.numpy)
    short = numkong.astype(np.ascontiguousarray(values), "bfloat16")
    return np.asarray(short).view(dtype.numpy)
