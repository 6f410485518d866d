"""Fixpipe: out of L0C to GM or L1, with quantisation, relu and the choice of layout.

Each value is converted, then relu'd, then laid out; only `m_size` × `n_size` elements are written.

`isa.quantise` has the rules for numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import ismethod
from typing import Any

import numpy as np

from isa.access import Access
from isa.cube_forms import (
    FIELD_MAX,
    Array,
    CubeCall,
    Tensor,
    access_of,
    blocks,
    check,
    cube_stream,
    issue,
    lanes_of,
    operand,
    structure,
    truth,
    whole,
)
from isa.cube_params import (
    CO2Layout,
    DataCopyCO12DstParams,
    FixpipeConfig,
    FixpipeParamsV220,
    QuantModes,
)
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.quantise import GROUP_COLUMNS, QUANT_TYPES, SCALAR_MODES, VECTOR_MODES, Conversion
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import (
    BLOCK_BYTES,
    DType,
    Pipe,
    Space,
    TPosition,
    bfloat16,
    float16,
    float32,
    int8,
    int32,
    uint8,
    uint64,
)

_CELL = 4  # bytes of one of its values
_ALIGN = 64  # bytes: fixpipe reads L0C from any row, unlike mmad
_WORD = 8  # bytes of one quantisation parameter
_FB_UNIT = 128
_DST_TYPES = (float16, bfloat16, float32, int32, int8, uint8)


def _fixpipe(src: Array) -> Array:
    """dst = src out of L0C: converted, relu'd, and laid out as rows or as NZ."""
    return src.copy()


_FIXPIPE = register(
    Instruction(
        "fixpipe",
        Pipe.FIX,
        "fixpipe",
        _DST_TYPES,
        _fixpipe,
        "FixpipeParamsV220[, FixpipeConfig]; cbuf_workspace, FixpipeParamsV220[, FixpipeConfig]",
    )
)
_TO_FB = Instruction(
    "data_copy", Pipe.FIX, "fixpipe", (uint64,), lambda src: src.copy(), "DataCopyParams"
)


def fixpipe(
    dst: Tensor,
    src: LocalTensor,
    *arguments: Any,
    cbuf_workspace: LocalTensor | None = None,
    params: FixpipeParamsV220 | None = None,
    config: FixpipeConfig | Callable[[], FixpipeConfig] | None = None,
) -> None:
    """Move a result from L0C to GM (rows or NZ) or L1 (NZ): (dst, src[, cbuf_workspace], params[, config]).

    `cbuf_workspace` holds one 64-bit parameter for each column, for the modes that start with V; from L1 it is
    copied to the start of FB first. `config` is row-major by default.
    """
    rest = list(arguments)
    if rest and isinstance(rest[0], (LocalTensor, GlobalTensor)):
        cbuf_workspace = rest.pop(0)
    if rest:
        params = rest.pop(0)
    if rest:
        config = rest.pop(0)
    if rest:
        fault(
            "ILLEGAL_PARAM",
            "form",
            "fixpipe takes (dst, src[, cbuf_workspace], params[, config]), got more arguments",
        )
    stream = cube_stream("fixpipe")
    structure("fixpipe", "params", params, FixpipeParamsV220)
    assert params is not None
    if config is None:
        config = FixpipeConfig.cfg_row_major
    layout: Any = config() if ismethod(config) else config
    structure("fixpipe", "config", layout, FixpipeConfig)
    _send(stream, "fixpipe", dst, src, cbuf_workspace, params, layout.layout)


def copy_out(dst: Tensor, src: LocalTensor, params: DataCopyCO12DstParams) -> None:
    """data_copy from L0C: a fixpipe whose scale is what `set_fix_pipe_pre_quant_flag` set."""
    name = "data_copy with DataCopyCO12DstParams"
    stream = cube_stream(name)
    if params.quant_pre in VECTOR_MODES:
        fault(
            "ILLEGAL_PARAM",
            "unsupported-form",
            f"{name}: {QuantModes(params.quant_pre).name} needs one scale for each column; use fixpipe with "
            f"cbuf_workspace",
        )
    relu = bool(whole(name, "relu_pre", params.relu_pre, 0, 1))
    rows = truth(name, "nz2nd_en", params.nz2nd_en)
    full = FixpipeParamsV220(
        params.n_size,
        params.m_size,
        params.src_stride,
        params.dst_stride,
        params.quant_pre,
        stream.registers.quant_scalar,
        relu_en=relu,
        is_channel_split=params.channel_split,
    )
    _send(stream, name, dst, src, None, full, CO2Layout.ROW_MAJOR if rows else CO2Layout.NZ)


def set_fix_pipe_pre_quant_flag(config: int) -> None:
    """Set the quantisation parameter that `data_copy` out of L0C uses."""
    name = "set_fix_pipe_pre_quant_flag"
    value = _quant_word(name, "config", config)
    cube_stream(name).registers.quant_scalar = value


def _quant_word(name: str, what: str, value: Any) -> int:
    return whole(
        name,
        what,
        value,
        0,
        (1 << 64) - 1,
        "; it holds the bits of the scale: make it with quant_parameter(scale)",
    )


def _send(
    stream: Any,
    name: str,
    dst: Any,
    src: Any,
    workspace: Any,
    params: FixpipeParamsV220,
    layout: CO2Layout,
) -> None:
    if workspace is not None and params.quant_pre not in VECTOR_MODES:
        mode = getattr(params.quant_pre, "name", params.quant_pre)
        fault(
            "ILLEGAL_PARAM",
            "unused-workspace",
            f"{name}: cbuf_workspace is for the modes that start with V, {mode} has no use for it",
        )
    if workspace is not None and getattr(workspace, "space", None) is Space.L1:
        workspace = _to_fixpipe_buffer(stream, name, workspace, params)
    gm = dst if isinstance(dst, GlobalTensor) and dst.buffer is not None else None
    key = (name, params, layout)
    issue(
        stream,
        key,
        (dst, src, workspace),
        gm,
        lambda: _bind(name, dst, src, workspace, params, layout),
    )


def _to_fixpipe_buffer(
    stream: Any, name: str, workspace: LocalTensor, params: FixpipeParamsV220
) -> LocalTensor:
    """Issue the copy of the columns' parameters from L1 to the start of FB, and the barrier that fixpipe needs."""
    operand(name, "cbuf_workspace", workspace, (Space.L1,), (uint64,), Pipe.FIX)
    columns = whole(name, "n_size", params.n_size, 1, 4095)
    count = blocks(columns * _WORD, _FB_UNIT) * _FB_UNIT // _WORD
    buffer = LocalTensor(uint64, TPosition.C2PIPE2GM, 0, count)

    def bind() -> Call:
        source = access_of(workspace, (count,), (_WORD,))
        target = access_of(buffer, (count,), (_WORD,))
        hint = f". {columns} columns take one 64-bit parameter each, in whole blocks of {_FB_UNIT} bytes"
        check(name, "cbuf_workspace", source, workspace, Pipe.FIX, hint)
        check(name, "cbuf_workspace in FB", target, buffer, Pipe.FIX, hint)
        return Call(
            _TO_FB,
            Pipe.FIX,
            (source,),
            (target,),
            _TO_FB.meaning,
            payload=count * _WORD,
            cost=("fixpipe", "fb"),
            extra="quantisation parameters",
        )

    issue(stream, ("fixpipe parameters", count), (buffer, workspace), None, bind)
    stream.pipe_barrier(Pipe.FIX)
    return buffer


def _bind(
    name: str, dst: Any, src: Any, workspace: Any, params: FixpipeParamsV220, layout: CO2Layout
) -> Call:
    pipe = Pipe.FIX
    operand(name, "dst", dst, (Space.GM, Space.L1), _DST_TYPES, pipe)
    operand(name, "src", src, (Space.L0C,), (float32, int32), pipe, _ALIGN)
    mode = _mode(name, dst, src, params)
    by_rows = _by_rows(name, dst, params, layout)
    rows = whole(name, "m_size", params.m_size, 1, 8192 if by_rows else FIELD_MAX)
    columns = whole(name, "n_size", params.n_size, 1, 4095)
    matrices = whole(name, "nd_num", params.nd_num, 0, FIELD_MAX if by_rows else 1)
    src_pitch = whole(name, "src_stride", params.src_stride, 0, FIELD_MAX)
    relu = truth(name, "relu_en", params.relu_en)
    unit_flag = unit_flag_of(name, params.unit_flag)
    extra = f"{rows}x{columns},{layout.name},{mode.name}{',relu' if relu else ''}"
    if matrices == 0:
        return CubeCall(_FIXPIPE, pipe, (), (), _fixpipe, extra=extra, unit_flag=unit_flag)
    groups = blocks(columns, GROUP_COLUMNS)
    src_matrix = _matrix_pitch(name, "src_nd_stride", params.src_nd_stride, matrices, 512)
    source = access_of(
        src,
        (matrices, groups, rows, GROUP_COLUMNS),
        (src_matrix * 1024, src_pitch * GROUP_COLUMNS * _CELL, GROUP_COLUMNS * _CELL, _CELL),
        lanes=lanes_of(
            (groups, rows, GROUP_COLUMNS),
            lambda g, r, c: (g * GROUP_COLUMNS + c < columns) & (r >= 0),
        ),
    )
    hint = (
        f". src_stride is the distance of two groups of 16 columns in rows of 16 elements, here {src_pitch}: "
        f"usually the tile's rows rounded up to 16"
    )
    check(name, "src", source, src, pipe, hint)
    if by_rows:
        target = _row_target(name, dst, params, matrices, rows, columns)
        width = 0
    else:
        width = _group_width(name, dst.dtype, params, columns)
        target = _group_target(name, dst, params, rows, columns, width)
    reads: tuple[Access, ...] = (source,)
    if mode in VECTOR_MODES:
        reads = (source, _parameters(name, workspace, columns))
    meaning = Conversion(mode, dst.dtype, relu, params.deq_scalar, columns, width)
    call = CubeCall(
        _FIXPIPE,
        pipe,
        reads,
        (target,),
        meaning,
        payload=matrices * rows * columns * dst.dtype.size,
        cost=("fixpipe", dst.space.name.lower()),
        extra=extra,
        unit_flag=unit_flag,
    )
    if isinstance(dst, GlobalTensor):
        call.cache_mode = dst.write_cache
    _lint(call, name, params, rows, groups, src_pitch)
    return call


def unit_flag_of(name: str, value: Any) -> int:
    """Return a unit flag; fault unless it is 0 (off), 2 (check, keep) or 3 (check, finish)."""
    flag = whole(name, "unit_flag", value, 0, 3, ": 0 off, 2 check and keep, 3 check and finish")
    if flag == 1:
        fault(
            "ILLEGAL_PARAM",
            "unit-flag-limit",
            f"{name}: unit_flag is 1, allowed are 0 (off), 2 (check and keep), 3 (check and finish)",
        )
    return flag


def _mode(name: str, dst: Tensor, src: LocalTensor, params: FixpipeParamsV220) -> QuantModes:
    """Return the quantisation mode; fault where the types of source and destination do not fit it."""
    try:
        mode = QuantModes(params.quant_pre)
    except (ValueError, TypeError):
        fault(
            "ILLEGAL_PARAM",
            "quant-pre",
            f"{name}: quant_pre must be a QuantModes such as F322F16, got {params.quant_pre!r}",
        )
    wanted, arriving = QUANT_TYPES.get(mode, (src.dtype, (src.dtype,)))
    if src.dtype is not wanted or dst.dtype not in arriving:
        fitting = [
            one.name
            for one, (first, last) in QUANT_TYPES.items()
            if first is src.dtype and dst.dtype in last
        ]
        hint = f"use {' or '.join(fitting)}" if fitting else "no mode does that"
        if src.dtype is dst.dtype:
            hint = "use NoQuant"
        fault(
            "ILLEGAL_PARAM",
            "quant-dtype",
            f"{name}: {mode.name} takes {wanted} in L0C to {' or '.join(str(one) for one in arriving)}; src {src.name} "
            f"is {src.dtype}, dst {dst.name} is {dst.dtype}: {hint}",
            dst.name,
            pipe=Pipe.FIX.name,
        )
    if mode in SCALAR_MODES:
        _quant_word(name, "deq_scalar", params.deq_scalar)
    return mode


def _by_rows(name: str, dst: Tensor, params: FixpipeParamsV220, layout: CO2Layout) -> bool:
    if layout is CO2Layout.COLUMN_MAJOR:
        fault("ILLEGAL_PARAM", "layout", f"{name}: COLUMN_MAJOR output does not exist on the 910B")
    by_rows = layout is CO2Layout.ROW_MAJOR
    if by_rows and dst.space is Space.L1:
        fault(
            "ILLEGAL_PARAM",
            "layout",
            f"{name}: to L1 the layout is NZ only; pass FixpipeConfig.cfg_nz() (data_copy: nz2nd_en=False)",
            dst.name,
        )
    if by_rows and truth(name, "is_channel_split", params.is_channel_split):
        fault(
            "ILLEGAL_PARAM",
            "channel-split",
            f"{name}: is_channel_split works with NZ output only",
        )
    return by_rows


def _matrix_pitch(name: str, what: str, value: Any, matrices: int, high: int) -> int:
    """Return the distance of two matrices, which a single one does not have."""
    return whole(name, what, value, 1, high) if matrices > 1 else 0


def _row_target(
    name: str,
    dst: Tensor,
    params: FixpipeParamsV220,
    matrices: int,
    rows: int,
    columns: int,
) -> Access:
    size = dst.dtype.size
    pitch = whole(name, "dst_stride", params.dst_stride, 1, (1 << 32) - 1, " elements")
    matrix = _matrix_pitch(name, "dst_nd_stride", params.dst_nd_stride, matrices, FIELD_MAX)
    if rows * matrices == 1 or (matrices == 1 and pitch == columns):
        target = access_of(dst, (rows * columns,), (size,))
    else:
        target = access_of(dst, (matrices, rows, columns), (matrix * size, pitch * size, size))
    hint = f". {rows} rows of {columns} elements, one every dst_stride = {pitch} elements"
    return check(name, "dst", target, dst, Pipe.FIX, hint)


def _group_width(name: str, dtype: DType, params: FixpipeParamsV220, columns: int) -> int:
    """Return the columns of one group of NZ output: 16, 8 with channel split, 32 for 8-bit types."""
    split = truth(name, "is_channel_split", params.is_channel_split)
    if split and dtype is not float32:
        fault(
            "ILLEGAL_PARAM",
            "channel-split",
            f"{name}: is_channel_split takes float32 on both sides, dst is {dtype}",
        )
    unit = 8 if split else GROUP_COLUMNS
    if columns % unit:
        fault(
            "ILLEGAL_PARAM",
            "n-size-alignment",
            f"{name}: n_size is {columns}; NZ output takes multiples of {unit} columns. Round it up, or write rows "
            f"(ROW_MAJOR)",
        )
    if split:
        return unit
    return BLOCK_BYTES if dtype.size == 1 else GROUP_COLUMNS


def _group_target(
    name: str, dst: Tensor, params: FixpipeParamsV220, rows: int, columns: int, width: int
) -> Access:
    size = dst.dtype.size
    pitch = whole(name, "dst_stride", params.dst_stride, 1, (1 << 32) - 1, " blocks of 32 bytes")
    groups = blocks(columns, width)
    lanes = lanes_of((groups, rows, width), lambda g, r, c: (g * width + c < columns) & (r >= 0))
    target = access_of(
        dst, (groups, rows, width), (pitch * BLOCK_BYTES, width * size, size), lanes=lanes
    )
    hint = f". {groups} groups of {width} columns by {rows} rows, one every dst_stride = {pitch} blocks of 32 bytes"
    return check(name, "dst", target, dst, Pipe.FIX, hint)


def _parameters(name: str, workspace: Any, columns: int) -> Access:
    if workspace is None:
        fault(
            "ILLEGAL_PARAM",
            "no-workspace",
            f"{name}: a mode that starts with V takes one parameter for each column: pass cbuf_workspace, uint64 in L1 "
            f"(A1) or FB (C2PIPE2GM)",
        )
    operand(name, "cbuf_workspace", workspace, (Space.L1, Space.FB), (uint64,), Pipe.FIX)
    access = access_of(workspace, (columns,), (_WORD,))
    return check(name, "cbuf_workspace", access, workspace, Pipe.FIX)


def _lint(
    call: Call, name: str, params: FixpipeParamsV220, rows: int, groups: int, src_pitch: int
) -> None:
    """Say so where column groups share rows of L0C, or rows of the result share bytes."""
    target = call.writes[0]
    if groups > 1 and src_pitch < rows:
        call.lint = (
            "LAYOUT",
            "src-stride-too-small",
            f"{name}: src_stride {src_pitch} is less than m_size {rows}, so the groups of 16 columns overlap in L0C. "
            f"src_stride is the tile's rows rounded up to 16",
        )
    elif int(np.sum(np.diff(target.ranges(), axis=1))) < call.bytes:
        call.lint = (
            "LAYOUT",
            "rows-overlap",
            f"{name}: with dst_stride {params.dst_stride} (nd_num {params.nd_num}) parts of the result overwrite each "
            f"other in {target.name}. dst_stride counts elements from row to row (ROW_MAJOR), or 32-byte blocks from "
            f"column group to column group (NZ)",
        )
