"""The forms of data_copy that change the layout, and the copies from L1 to the bias table and fixpipe's buffer.

GM to L1 with Nd2NzParams is one MTE2 instruction. GM to UB with Nd2NzParams and UB to GM with Nz2NdParamsFull are
loops of plain copies, as the vendor's library does them. L0C to GM or L1 with DataCopyCO12DstParams is a fixpipe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa.cube_forms import (
    FIELD_MAX,
    Array,
    LoadCall,
    Tensor,
    access_of,
    blocks,
    check,
    cube_stream,
    issue,
    operand,
    same_dtype,
    stream_of,
    whole,
)
from isa.cube_params import DataCopyCO12DstParams, Nd2NzParams, Nz2NdParamsFull
from isa.faults import fault
from isa.fixpipe import copy_out
from isa.instruction import Call, Instruction
from isa.params import DataCopyParams
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import (
    BLOCK_BYTES,
    CoreKind,
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
    uint64,
)

_TYPES = (int8, uint8, float16, bfloat16, int16, uint16, float32, int32, uint32)
_TABLE_TYPES: dict[Space, tuple[DType, ...]] = {
    Space.BT: (float32, int32),
    Space.FB: (uint64,),
}
_TABLE_UNIT = {Space.BT: 64, Space.FB: 128}
_MAX_STRIDE = 16384
_COLUMNS = 16

LAYOUT_PARAMS = (Nd2NzParams, Nz2NdParamsFull, DataCopyCO12DstParams)
"""The parameter structures of data_copy that this module takes."""

_ND2NZ = Instruction("data_copy", Pipe.MTE2, "data_copy_l1", _TYPES, lambda src: src, "Nd2NzParams")
_TO_TABLE = Instruction(
    "data_copy", Pipe.MTE1, "mte1", _TABLE_TYPES[Space.BT], lambda src: src.copy(), "count; DataCopyParams"
)  # fmt: skip


def layout_copy(dst: Any, src: Any, params: Any, plain: Callable[..., None]) -> None:
    """Copy with a change of layout; `plain` is the copy of bursts that the loops are made of."""
    if isinstance(params, Nd2NzParams):
        if getattr(dst, "space", None) is Space.UB:
            _rows_to_groups(dst, src, params, plain)
            return
        stream = cube_stream("data_copy")
        gm = src if isinstance(src, GlobalTensor) and src.buffer is not None else None
        issue(
            stream,
            ("data_copy", params),
            (dst, src),
            gm,
            lambda: _bind_nd2nz(dst, src, params),
        )
    elif isinstance(params, Nz2NdParamsFull):
        _groups_to_rows(dst, src, params, plain)
    else:
        copy_out(dst, src, params)


def _bind_nd2nz(dst: Any, src: Any, params: Nd2NzParams) -> Call:
    name, pipe = "data_copy with Nd2NzParams", Pipe.MTE2
    operand(name, "dst", dst, (Space.L1, Space.UB), _TYPES, pipe)
    operand(name, "src", src, (Space.GM,), _TYPES, pipe)
    same_dtype(name, dst, src, pipe)
    matrices, rows, columns = _matrix_sizes(name, params)
    src_matrix = whole(name, "src_nd_matrix_stride", params.src_nd_matrix_stride, 0, FIELD_MAX)
    src_row = whole(name, "src_d_value", params.src_d_value, 0, FIELD_MAX, " elements")
    group = whole(
        name, "dst_nz_c0_stride", params.dst_nz_c0_stride, 0, _MAX_STRIDE, " blocks of 32 bytes"
    )
    row = whole(
        name, "dst_nz_n_stride", params.dst_nz_n_stride, 0, _MAX_STRIDE, " blocks of 32 bytes"
    )
    matrix = whole(name, "dst_nz_matrix_stride", params.dst_nz_matrix_stride, 0, FIELD_MAX)
    extra = f"nd2nz:{matrices}x{rows}x{columns},pitch:{src_row}"
    if 0 in (matrices, rows, columns):
        return Call(_ND2NZ, pipe, (), (), _ND2NZ.meaning, extra=extra)
    size = dst.dtype.size
    c0 = BLOCK_BYTES // size
    if matrices > 1 and matrix % c0:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: dst_nz_matrix_stride is {matrix} elements, it must be a multiple of {c0} (32 bytes)",
            dst.name,
            pipe=pipe.name,
        )
    groups = blocks(columns, c0)
    source = access_of(src, (matrices, rows, columns), (src_matrix * size, src_row * size, size))
    shape = (matrices, groups, rows, c0)
    target = access_of(dst, shape, (matrix * size, group * BLOCK_BYTES, row * BLOCK_BYTES, size))
    hint = f". It is {matrices} times {rows} rows of {columns} elements, one every src_d_value = {src_row} elements"
    check(name, "src", source, src, pipe, hint)
    hint = (
        f". dst_nz_c0_stride and dst_nz_n_stride count 32-byte blocks: {groups} column groups every {group} blocks, "
        f"{rows} rows every {row}"
    )
    check(name, "dst", target, dst, pipe, hint)

    def meaning(values: Array) -> Array:
        result = np.zeros((matrices, rows, groups * c0), values.dtype)
        result[:, :, :columns] = values
        return result.reshape(matrices, rows, groups, c0).transpose(0, 2, 1, 3)

    call = Call(
        _ND2NZ,
        pipe,
        (source,),
        (target,),
        meaning,
        payload=matrices * rows * columns * size,
        cost=("data_copy_l1", "any"),
        extra=extra,
    )
    call.cache_mode = src.read_cache
    _lint_overlap(call, name, f"dst_nz_c0_stride {group} and dst_nz_n_stride {row}")
    return call


def _lint_overlap(call: Call, name: str, strides: str) -> None:
    """Say so where two parts of the destination are one place."""
    target = call.writes[0]
    covered = int(np.sum(np.diff(target.ranges(), axis=1)))
    wanted = target.elements * target.dtype.size
    if covered < wanted:
        call.lint = (
            "LAYOUT",
            "blocks-overlap",
            f"{name}: with {strides} the call writes {wanted} bytes to {covered} bytes of {target.name}, so parts "
            f"overwrite each other. Strides run from start to start; for a tile of M rows use the M rounded up to 16 "
            f"between column groups and 1 between rows",
        )


def _matrix_sizes(name: str, params: Nd2NzParams | Nz2NdParamsFull) -> tuple[int, int, int]:
    matrices = whole(name, "nd_num", params.nd_num, 0, 4095)
    rows = whole(name, "n_value", params.n_value, 0, 16384)
    columns = whole(name, "d_value", params.d_value, 0, FIELD_MAX)
    return matrices, rows, columns


def _rows_to_groups(
    dst: LocalTensor, src: Tensor, params: Nd2NzParams, plain: Callable[..., None]
) -> None:
    """GM to UB: one plain copy a row, its 32-byte blocks spread over the column groups."""
    name = "data_copy with Nd2NzParams"
    if not _on_vector_core(name):
        return
    operand(name, "dst", dst, (Space.UB,), _TYPES, Pipe.MTE2)
    operand(name, "src", src, (Space.GM,), _TYPES, Pipe.MTE2)
    matrices, rows, columns = _matrix_sizes(name, params)
    c0 = BLOCK_BYTES // dst.dtype.size
    if columns % c0:
        fault(
            "ILLEGAL_PARAM",
            "d-value-alignment",
            f"{name}: d_value is {columns}; into UB the rows go by plain copies of 32-byte blocks, so it must be a "
            f"multiple of {c0} elements",
        )
    group = whole(name, "dst_nz_c0_stride", params.dst_nz_c0_stride, 0, _MAX_STRIDE)
    pitch = whole(name, "dst_nz_n_stride", params.dst_nz_n_stride, 0, _MAX_STRIDE)
    src_matrix = whole(name, "src_nd_matrix_stride", params.src_nd_matrix_stride, 0, FIELD_MAX)
    src_row = whole(name, "src_d_value", params.src_d_value, 0, FIELD_MAX)
    matrix = whole(name, "dst_nz_matrix_stride", params.dst_nz_matrix_stride, 0, FIELD_MAX)
    groups = columns // c0
    if groups > 1 and group == 0:
        fault(
            "ILLEGAL_PARAM", "dst-nz-c0-stride-limit", f"{name}: dst_nz_c0_stride is 0, allowed is 1 to {_MAX_STRIDE}"
        )  # fmt: skip
    burst = DataCopyParams(groups, 1, 0, max(group - 1, 0))
    for m in range(matrices):
        for r in range(rows if columns else 0):
            plain(dst[m * matrix + r * pitch * c0 :], src[m * src_matrix + r * src_row :], burst)


def _groups_to_rows(
    dst: Tensor, src: LocalTensor, params: Nz2NdParamsFull, plain: Callable[..., None]
) -> None:
    """UB to GM: one plain copy a row, its runs of 16 elements gathered from the column groups."""
    name = "data_copy with Nz2NdParamsFull"
    if not _on_vector_core(name):
        return
    types = tuple(one for one in _TYPES if one.size > 1)
    operand(name, "dst", dst, (Space.GM,), types, Pipe.MTE3)
    operand(name, "src", src, (Space.UB,), types, Pipe.MTE3)
    matrices, rows, columns = _matrix_sizes(name, params)
    if columns % _COLUMNS:
        fault(
            "ILLEGAL_PARAM",
            "d-value-alignment",
            f"{name}: d_value is {columns}, it must be a multiple of {_COLUMNS} elements",
        )
    src_matrix = whole(name, "src_nd_matrix_stride", params.src_nd_matrix_stride, 0, FIELD_MAX)
    group = whole(name, "src_n_stride", params.src_n_stride, 0, 4096)
    dst_row = whole(name, "dst_d_stride", params.dst_d_stride, 0, FIELD_MAX)
    dst_matrix = whole(name, "dst_nd_matrix_stride", params.dst_nd_matrix_stride, 0, FIELD_MAX)
    groups = columns // _COLUMNS
    if groups > 1 and group == 0:
        fault(
            "ILLEGAL_PARAM",
            "src-n-stride-limit",
            f"{name}: src_n_stride is 0, allowed is 1 to 4096",
        )
    length = _COLUMNS * src.dtype.size // BLOCK_BYTES
    burst = DataCopyParams(groups, length, max(group - 1, 0) * length, 0)
    for m in range(matrices):
        for r in range(rows if columns else 0):
            plain(
                dst[m * dst_matrix + r * dst_row :],
                src[m * src_matrix * 256 + r * _COLUMNS :],
                burst,
            )


def _on_vector_core(name: str) -> bool:
    return stream_of(name).core_kind is CoreKind.AIV


def _widened(values: Array) -> Array:
    return values.astype(np.float32)


def table_copy(dst: LocalTensor, src: Tensor, count: Any, params: Any) -> None:
    """Copy from L1 to the bias table BT (MTE1, 64-byte bursts) or fixpipe's buffer FB (FIX, 128-byte bursts).

    Lengths and the destination's gaps are in those units, the source's gaps in 32-byte blocks. A float16 source
    becomes float32 in BT on the way (a bias of half precision); lengths then count what arrives.
    """
    stream = cube_stream("data_copy")
    key = ("data_copy", count if params is None else params)
    issue(stream, key, (dst, src), None, lambda: _bind_table(dst, src, count, params))


def _bind_table(dst: Any, src: Any, count: Any, params: Any) -> Call:
    unit = _TABLE_UNIT[dst.space]
    pipe, cost = (
        (Pipe.MTE1, ("mte1", "bt")) if dst.space is Space.BT else (Pipe.FIX, ("fixpipe", "fb"))
    )
    name = f"data_copy to {dst.space.name}"
    operand(name, "dst", dst, (dst.space,), _TABLE_TYPES[dst.space], pipe)
    widens = dst.dtype is float32 and getattr(src, "dtype", None) is float16
    operand(name, "src", src, (Space.L1,), (float16,) if widens else _TABLE_TYPES[dst.space], pipe)
    if not widens:
        same_dtype(name, dst, src, pipe)
    size = dst.dtype.size
    dropped = 0
    if params is None:
        wanted = whole(name, "count", count, 0, 1 << 40) * size
        times, length, src_gap, dst_gap = 1, wanted // unit, 0, 0
        dropped = wanted % unit
    else:
        times = whole(name, "block_count", params.block_count, 0, 4095)
        length = whole(
            name, "block_len", params.block_len, 0, FIELD_MAX, f" blocks of {unit} bytes"
        )
        src_gap = whole(name, "src_stride", params.src_stride, 0, FIELD_MAX, " blocks of 32 bytes")
        dst_gap = whole(
            name, "dst_stride", params.dst_stride, 0, FIELD_MAX, f" blocks of {unit} bytes"
        )
    extra = f"bursts:{times}x{length * unit} B,gaps:{src_gap}/{dst_gap}"
    run = length * unit
    record, payload = _TO_TABLE, times * run
    if payload == 0:
        call = Call(record, pipe, (), (), record.meaning, extra=extra)
    else:
        hint = f". block_len counts {unit} bytes when dst is in {dst.space.name}"
        length_there = run // size * src.dtype.size
        source = access_of(
            src, (times, run // size), (length_there + src_gap * BLOCK_BYTES, src.dtype.size)
        )
        target = access_of(dst, (times, run // size), (run + dst_gap * unit, size))
        check(name, "src", source, src, pipe, hint)
        check(name, "dst", target, dst, pipe, hint)
        meaning = _widened if widens else record.meaning
        call = LoadCall(  # whole bursts: behind a tail it takes what lies there
            record, pipe, (source,), (target,), meaning, payload=payload, cost=cost, extra=extra
        )
    if dropped:
        call.lint = (
            "LAYOUT",
            "copy-tail-dropped",
            f"{name}: {count} elements of {dst.dtype} are {wanted} bytes; this copy moves whole blocks of "
            f"{unit} bytes, so the last {dropped} bytes are not copied. Use a multiple of {unit // size} elements",
        )
    return call
