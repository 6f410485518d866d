"""The 3D load: a part of an image in L1, unfolded to a matrix, into L0A or L0B with one instruction.

With a 1 × 1 filter, stride 1 and no padding the unfolded matrix is the image itself, one row a pixel: so the
instruction loads a part of an NZ matrix, too.
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
from isa.unfold import Image, image_of


def bind_3d(
    record: Instruction, dst: Any, src: Any, params: LoadData3DParamsV2, boundary: int
) -> Call:
    """Return the 3D load of a part of a plain matrix as a call; `boundary` as set_load_data_boundary left it."""
    name, pipe = "load_data", Pipe.MTE1
    operand(name, "dst", dst, L0_SPACES, LOAD_TYPES, pipe)
    operand(name, "src", src, (Space.L1,), LOAD_TYPES, pipe)
    same_dtype(name, dst, src, pipe)
    image = image_of(name, params)
    height, width = image.size
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
    pixels = image.places[0] * image.places[1]
    c0 = BLOCK_BYTES // dst.dtype.size
    first_row = whole(name, "m_start_pt", params.m_start_pt, 0, FIELD_MAX)
    first_column = whole(name, "k_start_pt", params.k_start_pt, 0, FIELD_MAX)
    _check_part(name, first_row, rows, image, first_column, columns, channels, c0)
    groups = blocks(columns, c0)
    unfold = None
    if image.plain:
        place = first_row + first_column // c0 * pixels
        source = access_of(
            src,
            (groups, rows, c0),
            (pixels * BLOCK_BYTES, BLOCK_BYTES, dst.dtype.size),
            place * BLOCK_BYTES,
        )
    else:
        part = (first_row, rows), (first_column // c0, groups)
        source = _image_part(src, image, *part, c0)
        unfold = image.unfold(*part, params.pad_value)
    check(
        name,
        "src",
        source,
        src,
        pipe,
        f". The image in L1 is {height * width} pixels by {channels} channels in groups of {c0}",
    )
    if boundary and source.high > boundary:
        fault(
            "ILLEGAL_PARAM",
            "unsupported-form",
            f"{name}: src {src.name} reads L1 up to byte {source.high}, past the boundary of {boundary} set by "
            f"set_load_data_boundary; wrapping around there is not simulated",
            src.name,
        )
    target, plain, padding = _unfolded(dst, rows, groups, c0, columns, transposed)
    meaning = plain if unfold is None else lambda src: plain(unfold(src))
    check(name, "dst", target, dst, pipe)
    call = load_call(record, pipe, source, target, meaning)
    call.extra = f"3d:{rows}x{columns} from {first_row}/{first_column} of {pixels}x{channels}"
    call.extra += "" if image.plain else f",{image}"
    call.extra += ",transpose" if transposed else ""
    call.undefined = padding
    return call


def _image_part(
    src: LocalTensor, image: Image, rows: tuple[int, int], groups: tuple[int, int], c0: int
) -> Access:
    """Return what an unfolding load reads: whole rows of the image in the groups of channels that it takes."""
    low, high = image.rows_read(*rows)
    height, width = image.size
    first = groups[0] // image.taps
    last = (groups[0] + groups[1] - 1) // image.taps
    row, plane = width * BLOCK_BYTES, height * width * BLOCK_BYTES
    shape = (last + 1 - first, high - low, width, c0)
    strides = (plane, row, BLOCK_BYTES, src.dtype.size)
    return access_of(src, shape, strides, first * plane + low * row)


def _check_part(
    name: str,
    first_row: int,
    rows: int,
    image: Image,
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
    pixels = image.places[0] * image.places[1]
    if first_row + rows > pixels:
        what = (
            "l1_h × l1_w"
            if image.plain
            else f"the filter's {image.places[0]} × {image.places[1]} places"
        )
        fault(
            "BOUNDS",
            "image-out-of-bounds",
            f"{name}: m_start_pt {first_row} + m_extension {rows} is past the {pixels} pixels of {what}",
        )
    most = blocks(channels, c0) * c0 * image.taps
    if first_column + columns > most:
        taps = "" if image.taps == 1 else f", times {image.taps} taps: {most} columns"
        fault(
            "BOUNDS",
            "image-out-of-bounds",
            f"{name}: k_start_pt {first_column} + k_extension {columns} is past the {channels} channels of "
            f"channel_size (rounded up to {c0}{taps})",
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
