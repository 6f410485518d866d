"""The 3D load in its plain-matrix use: a part of an NZ matrix in L1 into L0A or L0B with one instruction.

The instruction unfolds an image of `l1_h` × `l1_w` pixels; with a 1 × 1 filter and stride 1 the unfolded matrix is
the image itself, one row a pixel. Convolutions are not simulated.
"""

from __future__ import annotations

from typing import Any

from isa.access import Access
from isa.cube_forms import (
    FIELD_MAX,
    L0_SPACES,
    LOAD_TYPES,
    Array,
    access_of,
    blocks,
    check,
    load_call,
    operand,
    poison,
    same_dtype,
    truth,
    whole,
)
from isa.cube_params import LoadData3DParamsV2
from isa.faults import fault
from isa.instruction import Call, Instruction
from isa.layout import FRACTAL_BYTES, FRACTAL_ROWS
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, Pipe, Space


def bind_3d(
    record: Instruction, dst: Any, src: Any, params: LoadData3DParamsV2, boundary: int
) -> Call:
    """Return the 3D load of a part of a plain matrix as a call; `boundary` as set_load_data_boundary left it."""
    name, pipe = "load_data", Pipe.MTE1
    operand(name, "dst", dst, L0_SPACES, LOAD_TYPES, pipe)
    operand(name, "src", src, (Space.L1,), LOAD_TYPES, pipe)
    same_dtype(name, dst, src, pipe)
    _check_plain(name, params)
    height = whole(name, "l1_h", params.l1_h, 0, 32767)
    width = whole(name, "l1_w", params.l1_w, 0, 32767)
    channels = whole(name, "channel_size", params.channel_size, 0, FIELD_MAX)
    columns = whole(name, "k_extension", params.k_extension, 0, FIELD_MAX)
    rows = whole(name, "m_extension", params.m_extension, 0, FIELD_MAX)
    transposed = truth(name, "en_transpose", params.en_transpose) or dst.space is Space.L0B
    if transposed and dst.dtype.size == 1:
        fault(
            "ILLEGAL_PARAM",
            "transpose-dtype",
            f"{name}: the 3D load into L0B, or with en_transpose, takes 16- and 32-bit types, got {dst.dtype}; "
            f"use load_data_with_transpose",
            dst.name,
            pipe=pipe.name,
        )
    if 0 in (height, width, channels, columns, rows):
        return Call(record, pipe, (), (), record.meaning, extra="3d:nothing")
    pixels = height * width
    c0 = BLOCK_BYTES // dst.dtype.size
    first_row = whole(name, "m_start_pt", params.m_start_pt, 0, FIELD_MAX)
    first_column = whole(name, "k_start_pt", params.k_start_pt, 0, FIELD_MAX)
    _check_part(name, first_row, rows, pixels, first_column, columns, channels, c0)
    groups = blocks(columns, c0)
    size = dst.dtype.size
    source = access_of(
        src,
        (groups, rows, c0),
        (pixels * BLOCK_BYTES, BLOCK_BYTES, size),
        (first_row + first_column // c0 * pixels) * BLOCK_BYTES,
    )
    check(
        name,
        "src",
        source,
        src,
        pipe,
        f". The image in L1 is {pixels} pixels by {channels} channels in groups of {c0}",
    )
    if boundary and source.high > boundary:
        fault(
            "ILLEGAL_PARAM",
            "unsupported-form",
            f"{name}: src {src.name} reads L1 up to byte {source.high}, past the boundary of {boundary} set by "
            f"set_load_data_boundary; wrapping around there is not simulated",
            src.name,
        )
    target, meaning, padding = _unfolded(dst, rows, groups, c0, columns, transposed)
    check(name, "dst", target, dst, pipe)
    call = load_call(record, pipe, source, target, meaning)
    call.extra = f"3d:{rows}x{columns} from {first_row}/{first_column} of {pixels}x{channels}"
    call.extra += ",transpose" if transposed else ""
    call.undefined = padding
    return call


def _check_plain(name: str, params: LoadData3DParamsV2) -> None:
    pads = params.pad_list
    if not isinstance(pads, (tuple, list)) or len(pads) != 4:
        fault(
            "ILLEGAL_PARAM",
            "pad-list",
            f"{name}: pad_list holds 4 numbers (left, right, top, bottom), got {pads!r}",
        )
    plain = (
        ("pad_list", tuple(pads), (0, 0, 0, 0)),
        ("filter_w", params.filter_w, 1),
        ("filter_h", params.filter_h, 1),
        ("stride_w", params.stride_w, 1),
        ("stride_h", params.stride_h, 1),
        ("filter_size_w", params.filter_size_w, False),
        ("filter_size_h", params.filter_size_h, False),
    )
    for field, value, wanted in plain:
        if value != wanted:
            fault(
                "ILLEGAL_PARAM",
                "unsupported-form",
                f"{name}: the 3D load is simulated for plain matrices, which needs {field} {wanted}, got {value}; "
                f"unfolding images for convolutions is not simulated",
            )


def _check_part(
    name: str,
    first_row: int,
    rows: int,
    pixels: int,
    first_column: int,
    columns: int,
    channels: int,
    c0: int,
) -> None:
    if first_column % c0:
        fault(
            "ILLEGAL_PARAM",
            "k-start-pt-alignment",
            f"{name}: k_start_pt is {first_column}, it must be a multiple of {c0} (32 bytes of elements)",
        )
    if first_row + rows > pixels:
        fault(
            "BOUNDS",
            "image-out-of-bounds",
            f"{name}: m_start_pt {first_row} + m_extension {rows} is past the {pixels} pixels of l1_h × l1_w",
        )
    if first_column + columns > blocks(channels, c0) * c0:
        fault(
            "BOUNDS",
            "image-out-of-bounds",
            f"{name}: k_start_pt {first_column} + k_extension {columns} is past the {channels} channels of "
            f"channel_size (rounded up to {c0})",
        )


def _unfolded(
    dst: LocalTensor, rows: int, groups: int, c0: int, columns: int, transposed: bool
) -> tuple[Access, Any, tuple[Access, ...]]:
    """Return destination, meaning and padding (elements without a value) of a 3D load of a plain matrix.

    `rows` pixels by `groups` groups of `c0` channels. Transposed: channels become rows, in ZZ for L0A and
    in ZN for L0B, which differ in the order of the fractals only.
    """
    size = dst.dtype.size
    if not transposed:
        height, width = blocks(rows, FRACTAL_ROWS), groups
        real = (rows, groups * c0)
    else:
        height, width = blocks(columns, FRACTAL_ROWS), blocks(rows, c0)
        real = (min(groups * c0, height * FRACTAL_ROWS), rows)
    by_columns = dst.space is Space.L0B
    shape = (width, height) if by_columns else (height, width)
    order = (2, 0, 1, 3) if by_columns else (0, 2, 1, 3)
    padded = (height * FRACTAL_ROWS, width * c0)

    def meaning(src: Array) -> Array:
        matrix = src.transpose(1, 0, 2).reshape(rows, groups * c0)
        if transposed:
            matrix = matrix.T[: real[0]]
        if padded != real:
            whole_matrix = poison(padded, matrix.dtype)
            whole_matrix[: real[0], : real[1]] = matrix
            matrix = whole_matrix
        return matrix.reshape(height, FRACTAL_ROWS, width, c0).transpose(order).copy()

    step = FRACTAL_BYTES * shape[1]
    strides = (step, FRACTAL_BYTES, BLOCK_BYTES, size)
    target = access_of(dst, (*shape, FRACTAL_ROWS, c0), strides)
    down, across = (FRACTAL_BYTES, step) if by_columns else (step, FRACTAL_BYTES)
    last_row, last_column = real[0] - (height - 1) * FRACTAL_ROWS, real[1] - (width - 1) * c0
    padding = []
    if last_row < FRACTAL_ROWS:
        skip = (height - 1) * down + last_row * BLOCK_BYTES
        tail = (width, FRACTAL_ROWS - last_row, c0)
        padding.append(access_of(dst, tail, (across, BLOCK_BYTES, size), skip))
    if last_column < c0:
        skip = (width - 1) * across + last_column * size
        tail = (height, FRACTAL_ROWS, c0 - last_column)
        padding.append(access_of(dst, tail, (down, BLOCK_BYTES, size), skip))
    return target, meaning, tuple(padding)
