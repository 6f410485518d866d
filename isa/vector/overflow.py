"""What becomes of values beyond float16 and bfloat16 when something is converted to them.

The unit has two modes, which the manual describes in two ways: infinities and NaN as IEEE has them, or the largest
value in place of an infinity and 0 in place of a NaN. The runtime of this architecture works in the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa.stream import current
from isa.types import DType, bfloat16, float16

Array = Any


def with_overflow_mode(meaning: Callable[..., Array], target: DType) -> Callable[..., Array]:
    """Return the meaning of a conversion to `target` in the overflow mode that the stream is in."""
    stream = current.get(None)
    if stream is None or not stream.registers.saturate or target not in (float16, bfloat16):
        return meaning
    return lambda *values: saturated(meaning(*values))


def saturated(values: Array) -> Array:
    """Return 16-bit floats with the largest value for infinities and 0 for NaN."""
    bits = values.view(np.uint16)
    infinity = np.array(np.inf, values.dtype).view(np.uint16)
    magnitude = bits & np.uint16(0x7FFF)
    kept = np.where(magnitude == infinity, bits - np.uint16(1), bits)
    return np.where(magnitude > infinity, np.uint16(0), kept).view(values.dtype)
