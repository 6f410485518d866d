"""Transposition of squares: `transpose` of one or of images, `trans_data_to_5hd` of lists of data blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    DType,
    Pipe,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)
from isa.vector.checks import check_integer, check_local, check_repeat, check_same_dtype
from isa.vector.params import TransDataTo5HDParams, TransposeParamsExt, TransposeType
from isa.vector.places import (
    PieceAccess,
    capacity,
    check_disjoint,
    check_repeat_order,
)
from isa.vector.special import check_type, flag_argument, mode_argument, send, tensor_key

Array = Any
_PIPE = Pipe.V.name
_HALF_TYPES = (int16, uint16, float16, bfloat16)
_TYPES = (int8, uint8, int16, uint16, float16, int32, uint32, float32)
SIDE = 16
"""Rows and columns of the square that one repeat transposes."""
SQUARE_BYTES = 512


def _transpose(src: Array) -> Array:
    """dst[j][i] = src[i][j]: a square of 16 × 16, or the channel axis of images moved last or first."""
    return src.reshape(SIDE, SIDE).T.copy()


_TRANSPOSE = register(
    Instruction(
        "transpose",
        Pipe.V,
        "transpose",
        _TYPES,
        _transpose,
        "dst, src; …, shared_tmp_buffer, params",
    )
)


def transpose(
    dst: LocalTensor,
    src: LocalTensor,
    shared_tmp_buffer: LocalTensor | None = None,
    params: TransposeParamsExt | None = None,
) -> None:
    """Transpose a square of 16 × 16 elements of 16 bits, or with parameters move the channel axis of images.

    TRANSPOSE_ND2ND_B16 is the plain square; source and destination may be the same. TRANSPOSE_NCHW2NHWC and
    TRANSPOSE_NHWC2NCHW take 8, 16 and 32-bit elements, h · w elements in whole data blocks, and a work buffer; the
    vendor's library makes them of several instructions, here they are one, priced by the squares moved.
    """
    if (shared_tmp_buffer is None) != (params is None):
        fault(
            "ILLEGAL_PARAM",
            "form",
            "transpose takes dst and src, or these with shared_tmp_buffer and params",
            pipe=_PIPE,
        )

    def bind() -> Call:
        if params is None:
            return _bind_square(dst, src)
        check_type("transpose", "params", params, TransposeParamsExt)
        kind = mode_argument("transpose", "transpose_type", params.transpose_type, TransposeType)
        check_local("transpose", "shared_tmp_buffer", shared_tmp_buffer, (*_TYPES, bfloat16))
        if kind is TransposeType.TRANSPOSE_ND2ND_B16:
            return _bind_square(dst, src)
        if kind not in (TransposeType.TRANSPOSE_NCHW2NHWC, TransposeType.TRANSPOSE_NHWC2NCHW):
            fault(
                "ILLEGAL_PARAM",
                "transpose-type",
                f"transpose: {kind.name} is not available on the 910B's basic API; it takes TRANSPOSE_ND2ND_B16, "
                f"TRANSPOSE_NCHW2NHWC and TRANSPOSE_NHWC2NCHW",
                pipe=_PIPE,
            )
        assert shared_tmp_buffer is not None
        return _bind_images(dst, src, shared_tmp_buffer, params, kind)

    work = () if shared_tmp_buffer is None else tensor_key(shared_tmp_buffer)
    send("transpose", (tensor_key(dst, src), work, params), bind)


def _bind_square(dst: LocalTensor, src: LocalTensor) -> Call:
    check_local("transpose", "dst", dst, _HALF_TYPES)
    check_local("transpose", "src", src, _HALF_TYPES)
    check_same_dtype("transpose", dst, (("src", src),))
    target, source = contiguous(dst, SIDE * SIDE), contiguous(src, SIDE * SIDE)
    check_bounds(target, dst, "transpose: dst", capacity(), _PIPE)
    check_bounds(source, src, "transpose: src", capacity(), _PIPE)
    if dst.addr != src.addr:
        check_disjoint("transpose", target, source, src)
    cost = ("transpose", dst.dtype.name)
    return Call(_TRANSPOSE, Pipe.V, (source,), (target,), _transpose, work=1, cost=cost)


def work_buffer_bytes(channels: int, dtype: DType) -> int:
    """Return what the work buffer of an image transposition holds: squares for the channels and two more, or twice."""
    if dtype.size == 1:
        return (channels + 2) * 32 * 32
    return (2 * channels + 1) * SIDE * SIDE * dtype.size


def _bind_images(
    dst: LocalTensor,
    src: LocalTensor,
    tmp: LocalTensor,
    params: TransposeParamsExt,
    kind: TransposeType,
) -> Call:
    check_local("transpose", "dst", dst, _TYPES)
    check_local("transpose", "src", src, _TYPES)
    check_same_dtype("transpose", dst, (("src", src),))
    n = check_integer("transpose", "n_size", params.n_size, 1, 65535)
    c = check_integer("transpose", "c_size", params.c_size, 1, 4095)
    h = check_integer("transpose", "h_size", params.h_size, 1, 4095)
    w = check_integer("transpose", "w_size", params.w_size, 1, 4095)
    size = dst.dtype.size
    if h * w > 4095 or h * w * size % BLOCK_BYTES:
        fault(
            "ILLEGAL_PARAM",
            "image-size",
            f"transpose: h_size · w_size is {h * w} elements ({h * w * size} bytes); it must be at most 4095 and fill "
            f"whole data blocks of {BLOCK_BYTES} bytes. Pad the image",
            pipe=_PIPE,
        )
    need = work_buffer_bytes(c, dst.dtype)
    if tmp.length < need:
        fault(
            "BOUNDS",
            "work-buffer",
            f"transpose: shared_tmp_buffer {tmp.name} has {tmp.length} bytes, {kind.name} with c_size {c} needs {need}",
            tmp.name,
            (tmp.addr, tmp.addr + need),
            _PIPE,
        )
    total = n * c * h * w
    source, whole = contiguous(src, total), contiguous(dst, total)
    work = Access(tmp, tmp.addr, (need // size,), (size,), dst.dtype)
    for what, access, tensor in (
        ("src", source, src),
        ("dst", whole, dst),
        ("shared_tmp_buffer", work, tmp),
    ):
        check_bounds(access, tensor, f"transpose: {what}", capacity(), _PIPE)
    check_disjoint("transpose", whole, source, src)
    check_disjoint("transpose", whole, work, tmp)
    check_disjoint("transpose", work, source, src)
    last = kind is TransposeType.TRANSPOSE_NCHW2NHWC
    garbage = np.full(work.elements * size, 0xFF, np.uint8).view(dst.dtype.numpy)

    def meaning(values: Array) -> Array:
        shape, axes = ((n, c, h * w), (0, 2, 1)) if last else ((n, h * w, c), (0, 2, 1))
        moved = values.reshape(shape).transpose(axes).ravel()
        return np.concatenate([moved, garbage])

    call = Call(
        _TRANSPOSE,
        Pipe.V,
        (source,),
        (PieceAccess(dst, [whole, work]),),
        meaning,
        work=-(-total * size // SQUARE_BYTES),
        cost=("transpose", dst.dtype.name),
        extra=kind.name,
    )
    call.undefined = (work,)
    return call


def _trans_data_to_5hd(rows: Array) -> Array:
    """dst[j][i] = src[i][j] of 16 data blocks; of 32-bit elements dst blocks 2j and 2j + 1 hold column j."""
    return rows.swapaxes(1, 2)


_5HD = register(
    Instruction(
        "trans_data_to_5hd",
        Pipe.V,
        "trans_data_to_5hd",
        _TYPES,
        _trans_data_to_5hd,
        "dst_list, src_list, params",
    )
)


def trans_data_to_5hd(
    dst_or_list: Sequence[LocalTensor] | LocalTensor,
    src_or_list: Sequence[LocalTensor] | LocalTensor,
    params: TransDataTo5HDParams,
) -> None:
    """Transpose 16 data blocks, named one by one, into 16 others; each moves on by its repeat stride.

    16-bit: dst[j][i] = src[i][j]. 32-bit: 16 sources of 8 elements, dst blocks 2j and 2j + 1 take column j. 8-bit: the
    low or the high 16 elements of each block. With one repeat both repeat strides must be 0. Lists of addresses,
    or tensors that hold addresses, carry no element type and are not simulated: pass LocalTensors.
    """
    if isinstance(dst_or_list, LocalTensor) or isinstance(src_or_list, LocalTensor):
        _refuse_list("a tensor of addresses is not simulated; pass two lists of 16 LocalTensors")

    def bind() -> Call:
        check_type("trans_data_to_5hd", "params", params, TransDataTo5HDParams)
        return _bind_5hd(dst_or_list, src_or_list, params)

    listed = isinstance(dst_or_list, (list, tuple)) and isinstance(src_or_list, (list, tuple))
    key = (tensor_key(*dst_or_list), tensor_key(*src_or_list)) if listed else (repr(dst_or_list),)
    send("trans_data_to_5hd", (key, params), bind)


def _refuse_list(sentence: str) -> NoReturn:
    fault("ILLEGAL_PARAM", "block-list", f"trans_data_to_5hd: {sentence}", pipe=_PIPE)


def _check_lists(dst_list: Any, src_list: Any) -> None:
    for what, blocks in (("dst_list", dst_list), ("src_list", src_list)):
        if not isinstance(blocks, (list, tuple)) or len(blocks) != SIDE:
            number = len(blocks) if isinstance(blocks, (list, tuple)) else blocks
            _refuse_list(f"{what} must be a list of 16 LocalTensors, got {number!r}")
        if any(isinstance(block, (int, np.integer)) for block in blocks):
            _refuse_list(f"{what} holds addresses, which have no element type; pass LocalTensors")
        for position, block in enumerate(blocks):
            check_local("trans_data_to_5hd", f"{what}[{position}]", block, _TYPES)
    rest = [(f"dst_list[{i}]", block) for i, block in enumerate(dst_list)]
    rest += [(f"src_list[{i}]", block) for i, block in enumerate(src_list)]
    check_same_dtype("trans_data_to_5hd", dst_list[0], tuple(rest))


def _bind_5hd(dst_list: Any, src_list: Any, params: TransDataTo5HDParams) -> Call:
    _check_lists(dst_list, src_list)
    dtype = dst_list[0].dtype
    high_dst = flag_argument("trans_data_to_5hd", "dst_high_half", params.dst_high_half)
    high_src = flag_argument("trans_data_to_5hd", "src_high_half", params.src_high_half)
    if (high_dst or high_src) and dtype.size > 1:
        _refuse_list(f"dst_high_half and src_high_half are for 8-bit elements, these are {dtype}")
    repeat = check_repeat("trans_data_to_5hd", params.repeat_times)
    steps = []
    for what, value in (
        ("dst_rep_stride", params.dst_rep_stride),
        ("src_rep_stride", params.src_rep_stride),
    ):
        step = check_integer("trans_data_to_5hd", what, value, 0, 65535)
        if repeat == 1 and step:
            fault(
                "ILLEGAL_PARAM",
                "single-repeat-stride",
                f"trans_data_to_5hd: {what} is {step} with repeat_times 1. The hardware adds the stride to every "
                f"address even then; set it to 0",
                pipe=_PIPE,
            )
        steps.append(step * BLOCK_BYTES)
    cost = ("trans_data_to_5hd", dtype.name)
    if repeat == 0:
        return Call(_5HD, Pipe.V, (), (), _trans_data_to_5hd, cost=cost)
    if repeat > 1 and steps[0] == 0:
        _refuse_list(
            "dst_rep_stride 0 makes every repeat write the same blocks; it must be at least 1"
        )
    wide = (
        SIDE if dtype.size == 1 else BLOCK_BYTES // dtype.size
    )  # elements of a block that take part
    target = _blocks("dst_list", dst_list, repeat, steps[0], wide, SIDE * high_dst)
    source = _blocks("src_list", src_list, repeat, steps[1], wide, SIDE * high_src)
    _check_order(dst_list, src_list, repeat, steps, wide * dtype.size, (high_dst, high_src))

    def meaning(values: Array) -> Array:
        rows = np.asarray(values).reshape(SIDE, repeat, wide).swapaxes(0, 1)
        columns = _trans_data_to_5hd(rows)  # repeats, elements of a block, 16
        return np.ascontiguousarray(columns).reshape(repeat, SIDE, wide).swapaxes(0, 1).ravel()

    return Call(_5HD, Pipe.V, (source,), (target,), meaning, work=repeat, cost=cost)


def _blocks(what: str, blocks: Any, repeat: int, step: int, wide: int, first: int) -> PieceAccess:
    """Return (16, repeats, elements) of the listed blocks as one access."""
    pieces = []
    for position, block in enumerate(blocks):
        size = block.dtype.size
        base = block.addr + first * size
        piece = Access(block, base, (repeat, wide), (step, size), block.dtype)
        check_bounds(piece, block, f"trans_data_to_5hd: {what}[{position}]", capacity(), _PIPE)
        pieces.append(piece)
    return PieceAccess(blocks[0], pieces)


def _check_order(
    dst_list: Any, src_list: Any, repeat: int, steps: list[int], size: int, high: tuple[bool, bool]
) -> None:
    def ranges(blocks: Any, step: int, first: int) -> Any:
        starts = np.array([block.addr + first for block in blocks], np.int64)
        return lambda row: np.stack([starts + row * step, starts + row * step + size], axis=1)

    check_repeat_order(
        "trans_data_to_5hd",
        dst_list[0],
        ranges(dst_list, steps[0], SIDE * high[0]),
        src_list[0],
        ranges(src_list, steps[1], SIDE * high[1]),
        repeat,
    )
