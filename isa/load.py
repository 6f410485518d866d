"""Loads into L0A and L0B: load_data in its 2D and 3D forms, load_data_with_transpose, init_const_value.

From L1 they are MTE1's work, from GM MTE2's. L0A holds A as ZZ, L0B holds B as ZN; `isa.layout` has the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.cube_forms import (
    FIELD_MAX,
    L0_SPACES,
    LOAD_TYPES,
    Array,
    Tensor,
    access_of,
    check,
    cube_stream,
    issue,
    load_call,
    operand,
    same_dtype,
    structure,
    truth,
    whole,
)
from isa.cube_params import (
    InitConstValueParams,
    LoadData2DParams,
    LoadData2dTransposeParams,
    LoadData3DParamsV2,
    LoadDataRepeatParam,
)
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.layout import FRACTAL_BYTES, FRACTAL_ROWS
from isa.load_3d import bind_3d
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    int16,
    int32,
    uint16,
    uint32,
)

_FILL_TYPES = (float16, bfloat16, int16, uint16, float32, int32, uint32)
_HINT = f". start_index, src_stride and dst_gap count fractals of {FRACTAL_BYTES} bytes"


def _load_data(src: Array) -> Array:
    """dst = src, fractal by fractal of 512 bytes, or a part of an NZ matrix in L0's layout."""
    return src.copy()


_LOAD_DATA = register(
    Instruction(
        "load_data", Pipe.MTE1, "mte1", LOAD_TYPES, _load_data, "LoadData2DParams; LoadData3DParamsV2"
    )
)  # fmt: skip


def _load_data_with_transpose(src: Array) -> Array:
    """dst = src transposed, square block by square block."""
    return src.copy()


_LOAD_TRANSPOSE = register(
    Instruction(
        "load_data_with_transpose",
        Pipe.MTE1,
        "mte1",
        LOAD_TYPES,
        _load_data_with_transpose,
        "LoadData2dTransposeParams",
    )
)


def _init_const_value(value: Array) -> Array:
    """dst = one value, in runs of blocks of L1 (32 bytes) or L0A, L0B (512 bytes)."""
    return value


_INIT_CONST_VALUE = register(
    Instruction(
        "init_const_value", Pipe.MTE1, "mte1", _FILL_TYPES, _init_const_value, "InitConstValueParams"
    )
)  # fmt: skip


def load_data(dst: LocalTensor, src: Tensor, params: LoadData2DParams | LoadData3DParamsV2) -> None:
    """Load fractals (LoadData2DParams) or a part of an NZ matrix (LoadData3DParamsV2) into L0A or L0B.

    2D: from L1 (MTE1) or from fractals in GM (MTE2, also to L1, without transposition). `if_transpose` turns each
    16 × 16 fractal of a 16-bit type. 3D: the part arrives as ZZ in L0A, transposed to ZN in L0B.
    """
    stream = cube_stream("load_data")
    structure("load_data", "params", params, LoadData2DParams, LoadData3DParamsV2)
    registers = stream.registers
    if isinstance(params, LoadData2DParams):
        if getattr(src, "space", None) is Space.GM:
            stream.issue(_bind_2d(dst, src, params))
            return
        issue(stream, ("load_data", params), (dst, src), None, lambda: _bind_2d(dst, src, params))
        return
    if registers.load_repeat != (1, 0, 0):
        fault(
            "ILLEGAL_PARAM",
            "unsupported-form",
            "load_data: repeats of the 3D load (set_load_data_repeat) are not simulated; "
            "set LoadDataRepeatParam() and call load_data once for each part",
        )
    key = ("load_data", params, registers.load_boundary)
    registers.load_padding = params.pad_value
    issue(
        stream,
        key,
        (dst, src),
        None,
        lambda: bind_3d(_LOAD_DATA, dst, src, params, registers.load_boundary),
    )


def _bind_2d(dst: Any, src: Any, params: LoadData2DParams) -> Call:
    name = "load_data"
    from_gm = getattr(src, "space", None) is Space.GM
    pipe = Pipe.MTE2 if from_gm else Pipe.MTE1
    operand(name, "dst", dst, (*L0_SPACES, Space.L1) if from_gm else L0_SPACES, LOAD_TYPES, pipe)
    operand(name, "src", src, (Space.L1, Space.GM), LOAD_TYPES, pipe)
    same_dtype(name, dst, src, pipe)
    start = whole(name, "start_index", params.start_index, 0, FIELD_MAX)
    times = whole(
        name, "repeat_times", params.repeat_times, 1, 255, " fractals a call. Split the load"
    )
    stride = whole(name, "src_stride", params.src_stride, 0, FIELD_MAX, " fractals")
    gap = whole(name, "dst_gap", params.dst_gap, 0, FIELD_MAX, " fractals")
    whole(name, "sid", params.sid, 0, 15)
    down = whole(
        name, "addr_mode", params.addr_mode, 0, 1, ": 0 walks the source upward, 1 downward"
    )
    transposed = truth(name, "if_transpose", params.if_transpose)
    size = dst.dtype.size
    if transposed:
        _check_transposition(name, dst.dtype, from_gm)
    first = start - (times - 1) * stride if down else start
    if first < 0:
        fault(
            "BOUNDS",
            "tensor-out-of-bounds",
            f"{name}: addr_mode 1 walks {times} fractals down from fractal {start} in steps of {stride} and leaves "
            f"the start of src {src.name} by {-first} fractals",
            src.name,
            pipe=pipe.name,
        )
    rows = (FRACTAL_ROWS, FRACTAL_ROWS) if transposed else (FRACTAL_BYTES // size,)
    inner = (BLOCK_BYTES, size) if transposed else (size,)
    source = access_of(src, (times, *rows), (stride * FRACTAL_BYTES, *inner), first * FRACTAL_BYTES)
    target = access_of(dst, (times, *rows), ((1 + gap) * FRACTAL_BYTES, *inner))
    check(name, "src", source, src, pipe, _HINT)
    check(name, "dst", target, dst, pipe, _HINT)
    call = load_call(_LOAD_DATA, pipe, source, target, _fractals(bool(down), transposed))
    call.extra = f"fractals:{times},from:{start},step:{-stride if down else stride},gap:{gap}"
    call.extra += ",transpose" if transposed else ""
    if times > 1 and stride == 0:
        call.lint = (
            "LAYOUT",
            "same-fractal",
            f"{name}: src_stride is 0, so all {times} repeats read the one fractal {start}. src_stride counts fractals "
            f"from start to start: 1 for neighbours",
        )
    return call


def _check_transposition(name: str, dtype: DType, from_gm: bool) -> None:
    if from_gm:
        fault(
            "ILLEGAL_PARAM",
            "transpose-from-gm",
            f"{name}: if_transpose works from L1 only; load from GM to L1 first",
        )
    if dtype.size != 2:
        fault(
            "ILLEGAL_PARAM",
            "transpose-dtype",
            f"{name}: if_transpose takes 16-bit types only, got {dtype}; use load_data_with_transpose",
        )


def _fractals(down: bool, transposed: bool) -> Any:
    if not down and not transposed:
        return _load_data

    def meaning(src: Array) -> Array:
        ordered = src[::-1] if down else src
        return (ordered.transpose(0, 2, 1) if transposed else ordered).copy()

    return meaning


def load_data_with_transpose(
    dst: LocalTensor, src: LocalTensor, params: LoadData2dTransposeParams
) -> None:
    """Load square blocks from L1 into L0A or L0B, each transposed.

    A block of a 16-bit type is one fractal; of an 8-bit type 32 rows of 32; of a 32-bit type two neighbouring
    fractals of 16 rows by 8 side by side. No repeats: nothing happens.
    """
    stream = cube_stream("load_data_with_transpose")
    structure("load_data_with_transpose", "params", params, LoadData2dTransposeParams)
    key = ("load_data_with_transpose", params)
    issue(stream, key, (dst, src), None, lambda: _bind_transpose(dst, src, params))


def _bind_transpose(dst: Any, src: Any, params: LoadData2dTransposeParams) -> Call:
    name, pipe = "load_data_with_transpose", Pipe.MTE1
    operand(name, "dst", dst, L0_SPACES, LOAD_TYPES, pipe)
    operand(name, "src", src, (Space.L1,), LOAD_TYPES, pipe)
    same_dtype(name, dst, src, pipe)
    start = whole(name, "start_index", params.start_index, 0, FIELD_MAX, " square blocks")
    times = whole(
        name, "repeat_times", params.repeat_times, 0, 255, " blocks a call. Split the load"
    )
    stride = whole(name, "src_stride", params.src_stride, 0, FIELD_MAX, " square blocks")
    gap = whole(name, "dst_gap", params.dst_gap, 0, FIELD_MAX, " fractals")
    fractal_gap = whole(name, "dst_frac_gap", params.dst_frac_gap, 0, FIELD_MAX, " fractals")
    whole(name, "addr_mode", params.addr_mode, 0, 0, ": it is reserved")
    extra = f"blocks:{times},from:{start},step:{stride},gaps:{gap}/{fractal_gap}"
    if times == 0:
        return Call(_LOAD_TRANSPOSE, pipe, (), (), _load_data_with_transpose, extra=extra)
    size = dst.dtype.size
    fractals = 1 if size == 2 else 2
    block = fractals * FRACTAL_BYTES
    source = access_of(src, (times, block // size), (stride * block, size), start * block)
    shape = (times, fractals, FRACTAL_ROWS, BLOCK_BYTES // size)
    strides = ((1 + gap) * FRACTAL_BYTES, (1 + fractal_gap) * FRACTAL_BYTES, BLOCK_BYTES, size)
    target = access_of(dst, shape, strides)
    hint = (
        f". start_index and src_stride count square blocks of {block} bytes, the gaps fractals of "
        f"{FRACTAL_BYTES} bytes"
    )
    check(name, "src", source, src, pipe, hint)
    check(name, "dst", target, dst, pipe, hint)
    call = load_call(_LOAD_TRANSPOSE, pipe, source, target, _square_blocks(times, size))
    call.extra = extra
    steps = [
        index * (1 + gap) + j * (1 + fractal_gap) for index in range(times) for j in range(fractals)
    ]
    if len(set(steps)) < len(steps):
        call.lint = (
            "LAYOUT",
            "blocks-overlap",
            f"{name}: with dst_gap {gap} and dst_frac_gap {fractal_gap} two fractals land in one place of dst. "
            f"Block i, fractal j goes to fractal i * (1 + dst_gap) + j * (1 + dst_frac_gap)",
        )
    return call


def _square_blocks(times: int, size: int) -> Any:
    """Return the transposition of square blocks, in the order of the destination's fractals."""

    def meaning(src: Array) -> Array:
        if size == 2:
            return src.reshape(times, 1, 16, 16).transpose(0, 1, 3, 2).copy()
        if size == 1:
            turned = src.reshape(times, 32, 32).transpose(0, 2, 1)
            return turned.reshape(times, 2, 16, 32).copy()
        square = src.reshape(times, 2, 16, 8).transpose(0, 2, 1, 3).reshape(times, 16, 16)
        turned = square.transpose(0, 2, 1).reshape(times, 16, 2, 8)
        return turned.transpose(0, 2, 1, 3).copy()

    return meaning


def init_const_value(dst: LocalTensor, init_const_value_params: InitConstValueParams) -> None:
    """Fill L1 (MTE2), L0A or L0B (MTE1) with one value: runs of blocks with gaps; nothing where a count is 0."""
    stream = cube_stream("init_const_value")
    structure(
        "init_const_value", "init_const_value_params", init_const_value_params, InitConstValueParams
    )
    params = init_const_value_params
    key = ("init_const_value", params, repr(params.init_value))
    issue(stream, key, (dst,), None, lambda: _bind_fill(dst, params))


def _bind_fill(dst: Any, params: InitConstValueParams) -> Call:
    name = "init_const_value"
    in_l1 = getattr(dst, "space", None) is Space.L1
    pipe = Pipe.MTE2 if in_l1 else Pipe.MTE1
    operand(name, "dst", dst, (Space.L1, *L0_SPACES), _FILL_TYPES, pipe)
    unit = BLOCK_BYTES if in_l1 else FRACTAL_BYTES
    times = whole(name, "repeat_times", params.repeat_times, 0, 32767)
    count = whole(name, "block_num", params.block_num, 0, 32767, f" blocks of {unit} bytes")
    gap = whole(name, "dst_gap", params.dst_gap, 0, 32767, f" blocks of {unit} bytes")
    value = _fill_value(name, params.init_value, dst.dtype)
    extra = f"runs:{times}x{count} blocks of {unit} B,gap:{gap}"
    if times == 0 or count == 0:
        return Call(_INIT_CONST_VALUE, pipe, (), (), _init_const_value, extra=extra)
    size = dst.dtype.size
    target = access_of(dst, (times, count * unit // size), ((count + gap) * unit, size))
    check(name, "dst", target, dst, pipe, f". block_num and dst_gap count {unit} bytes here")
    return Call(
        _INIT_CONST_VALUE,
        pipe,
        (),
        (target,),
        lambda: value,
        payload=times * count * unit,
        cost=("mte2", "fill_l1") if in_l1 else ("mte1", "fill_l0"),
        extra=extra,
    )


def _fill_value(name: str, value: Any, dtype: DType) -> Any:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        fault(
            "ILLEGAL_PARAM",
            "not-a-number",
            f"{name}: init_value must be a number, got {value!r}",
        )
    if dtype.is_float():
        with np.errstate(all="ignore"):
            return np.array(value, np.float64).astype(dtype.numpy)[()]
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= value <= limits.max or value != int(value):
        fault(
            "ILLEGAL_PARAM",
            "init-value",
            f"{name}: init_value {value} is no {dtype}, which holds whole numbers from {limits.min} to {limits.max}",
        )
    return np.array(int(value), dtype.numpy)[()]


def set_load_data_boundary(boundary: int) -> None:
    """Set the byte of L1 past which a 3D load would wrap around; 0 for none."""
    name = "set_load_data_boundary"
    value = whole(name, "boundary", boundary, 0, (1 << 32) - 1)
    if 0 < value < 1024:
        fault(
            "ILLEGAL_PARAM",
            "boundary-limit",
            f"{name}: boundary is 0 (none) or at least 1024 bytes, got {value}",
        )
    cube_stream(name).registers.load_boundary = value


def set_load_data_padding_value(pad_value: float) -> None:
    """Set the value of padding pixels of 3D loads."""
    name = "set_load_data_padding_value"
    if isinstance(pad_value, (bool, np.bool_)) or not isinstance(
        pad_value, (int, float, np.number)
    ):
        fault(
            "ILLEGAL_PARAM",
            "not-a-number",
            f"{name}: pad_value must be a number, got {pad_value!r}",
        )
    cube_stream(name).registers.load_padding = pad_value


def set_load_data_repeat(param: LoadDataRepeatParam) -> None:
    """Set the repeats of 3D loads; anything but the default makes later 3D loads unsupported."""
    name = "set_load_data_repeat"
    structure(name, "param", param, LoadDataRepeatParam)
    times = whole(name, "repeat_time", param.repeat_time, 0, 255)
    stride = whole(name, "repeat_stride", param.repeat_stride, 0, FIELD_MAX)
    mode = whole(name, "repeat_mode", param.repeat_mode, 0, 1)
    cube_stream(name).registers.load_repeat = (times, stride, mode)
