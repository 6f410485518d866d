"""data_copy_pad: bursts of whole bytes between GM and UB, with padding on the way in."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from isa.access import Access
from isa.arguments import check_integer, check_scalar
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import (
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyPadParams,
    DataCopyParams,
)
from isa.routes import Tensor, check_inside, route, rows_of, start_of, stream_for
from isa.stream import current
from isa.types import BLOCK_BYTES, DTYPES, Pipe, Space

Array = Any

MAX_BLOCK_COUNT = 4095
"""Bursts of one copy: 12 bits."""
MAX_LEN = 2_097_151
"""Bytes of one burst as DataCopyExtParams; DataCopyParams has 16 bits for it and for the gaps."""
MAX_SHORT = 65535
MAX_GAP = (1 << 32) - 1
"""The gap of DataCopyExtParams: bytes in GM, data blocks in UB."""

_NAME = "data_copy_pad"


def _data_copy_pad(src: Array) -> Array:
    """dst = src in bursts of whole bytes: UB rows start on 32-byte borders, GM rows anywhere."""
    return src.copy()


_RECORD = register(
    Instruction(
        _NAME,
        None,
        "data_copy_ub",
        DTYPES,
        _data_copy_pad,
        "DataCopyExtParams[, DataCopyPadExtParams]",
    )
)


def data_copy_pad(
    dst: Tensor,
    src: Tensor,
    data_copy_params: DataCopyExtParams | DataCopyParams,
    pad_params: DataCopyPadExtParams | DataCopyPadParams | None = None,
    *,
    nd2nz_params: Any = None,
) -> None:
    """Copy bursts of whole bytes between GM and UB; gaps are bytes on the GM side, 32-byte blocks on the UB side.

    GM to UB: each row starts on a 32-byte border of UB and is filled up to one: with is_pad by the padding value;
    without, by the row's first element, or, where left or right padding is asked for, by `set_pad_value`'s value (by
    anything, where there is none). What the padding value did not fill must not be used, and counts as
    never written. UB to GM: exactly the bytes of each row are stored.
    """
    stream = stream_for(_NAME, dst, src)
    if stream is None:
        return
    pipe = route(_NAME, dst, src)
    if pipe is Pipe.V or Space.L1 in (dst.space, src.space) or nd2nz_params is not None:
        fault(
            "ILLEGAL_PARAM",
            "no-path",
            "data_copy_pad moves data between GM and UB only"
            + (
                ""
                if nd2nz_params is None
                else "; nd2nz_params are for a way from UB to L1, which the 910B lacks"
            ),
            dst.name,
            pipe=pipe.name,
        )
    stream.issue(_bind(dst, src, data_copy_params, pad_params, pipe))


def _bind(dst: Tensor, src: Tensor, params: Any, pad: Any, pipe: Pipe) -> Call:
    if not isinstance(params, (DataCopyExtParams, DataCopyParams)):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"{_NAME}: expected DataCopyExtParams, got {type(params).__name__}",
            pipe=pipe.name,
        )
    wide = isinstance(params, DataCopyExtParams)

    def field(what: str, high: int, why: str = "") -> int:
        return check_integer(_NAME, what, getattr(params, what), 0, high, why, pipe=pipe.name)

    rows = field("block_count", MAX_BLOCK_COUNT)
    length = field("block_len", MAX_LEN if wide else MAX_SHORT, " bytes")
    gaps = [field(what, MAX_GAP if wide else MAX_SHORT) for what in ("dst_stride", "src_stride")]
    size = dst.dtype.size
    if length % size:
        fault(
            "ILLEGAL_PARAM",
            "block-len-not-whole",
            f"{_NAME}: block_len is {length} bytes, which is no whole number of {dst.dtype} elements ({size} "
            f"bytes). block_len counts bytes here",
            dst.name,
            pipe=pipe.name,
        )
    padding = _Padding(dst, pad) if pipe is Pipe.MTE2 else None
    if padding is None and pad is not None:
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{_NAME}: pad_params belong to GM to UB; UB to GM stores exactly block_len bytes a row",
            dst.name,
            pipe=pipe.name,
        )
    extra = f"bursts:{rows}x{length} B,gaps:{gaps[1]}/{gaps[0]}"
    if rows == 0 or length == 0:
        return Call(_RECORD, pipe, (), (), _data_copy_pad, extra=extra)
    if padding is None:
        return _bind_out(dst, src, rows, length, gaps, extra)
    return _bind_in(dst, src, rows, length, gaps, extra, padding)


class _Padding:
    """What surrounds each row in UB: elements left and right, and with what.

    `value` fills; where it is None, `first` says that the row's first element does, and else nothing defined does.
    """

    def __init__(self, dst: Tensor, pad: Any) -> None:
        self.left = self.right = 0
        self.value: Any = None
        self.first = True
        if pad is None:
            return
        if not isinstance(pad, (DataCopyPadExtParams, DataCopyPadParams)):
            fault(
                "ILLEGAL_PARAM",
                "wrong-params",
                f"{_NAME}: expected DataCopyPadExtParams, got {type(pad).__name__}",
                pipe=Pipe.MTE2.name,
            )
        if not isinstance(pad.is_pad, (bool, np.bool_)):
            fault(
                "ILLEGAL_PARAM",
                "not-a-flag",
                f"{_NAME}: is_pad must be True or False, got {pad.is_pad!r}",
                pipe=Pipe.MTE2.name,
            )
        limit = BLOCK_BYTES // dst.dtype.size
        self.left, self.right = (
            check_integer(
                _NAME,
                what,
                getattr(pad, what),
                0,
                limit,
                f" elements of {dst.dtype} (32 bytes)",
                pipe=Pipe.MTE2.name,
            )
            for what in ("left_padding", "right_padding")
        )
        if isinstance(pad, DataCopyPadExtParams) and pad.dtype not in (None, dst.dtype):
            fault(
                "ILLEGAL_PARAM",
                "dtype-mismatch",
                f"{_NAME}: DataCopyPadExtParams is of {pad.dtype}, dst {dst.name} of {dst.dtype}",
                dst.name,
                pipe=Pipe.MTE2.name,
            )
        if pad.is_pad:
            self.value = self._padding_value(dst, pad)
        elif self.left or self.right:
            self.first = False
            register = current.get().registers.pad_value
            if register is not None:
                self.value = check_scalar(
                    "set_pad_value", register, dst.dtype, "padding_value", pipe=Pipe.MTE2.name
                )

    def _padding_value(self, dst: Tensor, pad: Any) -> Any:
        size = dst.dtype.size
        value = pad.padding_value
        pipe = Pipe.MTE2.name
        if isinstance(pad, DataCopyPadParams):  # the old structure carries the bits of the value
            number = check_integer(_NAME, "padding_value", value, 0, (1 << 64) - 1, pipe=pipe)
            bits = np.array([number & ((1 << (8 * size)) - 1)], "<u8").view(np.uint8)[:size]
            result = bits.view(dst.dtype.numpy)[0]
        else:
            result = check_scalar(_NAME, value, dst.dtype, "padding_value", pipe=pipe)
        if size == 8 and value != 0:
            fault(
                "ILLEGAL_PARAM",
                "padding-value",
                f"{_NAME}: 64-bit types pad with 0 only, got {value}",
                pipe=pipe,
            )
        return result


def _bind_in(
    dst: Tensor,
    src: Tensor,
    rows: int,
    length: int,
    gaps: list[int],
    extra: str,
    padding: _Padding,
) -> Call:
    size = dst.dtype.size
    used = (padding.left + padding.right) * size + length
    padded = -(-used // BLOCK_BYTES) * BLOCK_BYTES
    pitch = padded + gaps[0] * BLOCK_BYTES
    source = rows_of(src, rows, length, length + gaps[1])
    target = rows_of(dst, rows, padded, pitch)
    check_inside(_NAME, "src", source, src, Pipe.MTE2)
    check_inside(
        _NAME, "dst", target, dst, Pipe.MTE2, _rows_hint("written to", rows, length, padded)
    )
    start = padding.left
    stop = start + length // size
    call = Call(
        _RECORD,
        Pipe.MTE2,
        (source,),
        (target,),
        partial(_filled, rows, padded // size, start, padding),
        payload=rows * length,
        extra=extra,
    )
    call.cache_mode = src.read_cache  # type: ignore[union-attr]
    if padding.value is None:
        call.undefined = tuple(
            Access(dst, start_of(dst) + low, (rows, (high - low) // size), (pitch, size), dst.dtype)
            for low, high in ((0, start * size), (stop * size, padded))
            if high > low
        )
    return call


def _rows_hint(verb: str, rows: int, length: int, pitch: int) -> str:
    """Say that rows in UB do not lie side by side, where that may be what was not expected."""
    if rows == 1 or pitch == length:
        return ""
    return (
        f". In UB each row starts on a {BLOCK_BYTES}-byte border, so row 1 is {verb} byte {pitch} of the tensor, not "
        f"{length}; rows that lie side by side in UB go as one, block_count 1, block_len {rows * length}"
    )


def _filled(rows: int, width: int, start: int, padding: _Padding, values: Array) -> Array:
    """Return rows of `width` elements: the values from `start` on, filler around them."""
    values = values.reshape(rows, -1)
    result = np.empty((rows, width), values.dtype)
    if padding.value is not None:
        result[...] = padding.value
    elif padding.first:
        result[...] = values[:, :1]
    else:
        result.view(np.uint8)[...] = 0xFF  # undefined on the hardware: poison
    result[:, start : start + values.shape[1]] = values
    return result


def _bind_out(
    dst: Tensor, src: Tensor, rows: int, length: int, gaps: list[int], extra: str
) -> Call:
    row = -(-length // BLOCK_BYTES) * BLOCK_BYTES
    source = rows_of(src, rows, length, row + gaps[1] * BLOCK_BYTES)
    target = rows_of(dst, rows, length, length + gaps[0])
    check_inside(_NAME, "src", source, src, Pipe.MTE3, _rows_hint("read from", rows, length, row))
    check_inside(_NAME, "dst", target, dst, Pipe.MTE3)
    call = Call(
        _RECORD,
        Pipe.MTE3,
        (source,),
        (target,),
        _data_copy_pad,
        payload=rows * length,
        extra=extra,
    )
    call.cache_mode = dst.write_cache  # type: ignore[union-attr]
    return call
