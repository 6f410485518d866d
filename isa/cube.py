"""The matrix unit: mmad, and the registers that choose its precision.

A comes from L0A as ZZ, B from L0B as ZN, C stands in L0C as NZ with 16 columns a group; `isa.layout` has the
formulas. m, n, k are the real sizes: whole fractals are computed and written, but lanes of A and B past k do not count.

Order of additions. The hardware's is not published. Here C starts from zero, bias, or L0C, and the products are
added over k. Normally one float32 matrix product is added to C, fast and as accurate as float32 is. A stream with
`exact` true adds block after block of 16 products: each block's sum is taken in float64, rounded to float32, and
added to C in float32; results then do not depend on the host's matrix library. Integers are exact in either mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access
from isa.cube_forms import (
    Array,
    CubeCall,
    access_of,
    blocks,
    check,
    cube_stream,
    exact_mode,
    issue,
    lanes_of,
    one_thread_mode,
    operand,
    structure,
    truth,
    whole,
)
from isa.cube_params import MmadParams
from isa.faults import fault
from isa.fixpipe import unit_flag_of
from isa.half import widen
from isa.instruction import Call, Instruction, register
from isa.layout import FRACTAL_BYTES, FRACTAL_ROWS, c0_size
from isa.tensor import LocalTensor
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
)

RESULT: dict[DType, DType] = {
    float16: float32,
    bfloat16: float32,
    float32: float32,
    int8: int32,
}
"""Type of C by the type of A and B."""

_SIDE = 16
_MAX_SIZE = 4095
_HF32_DROPPED = (
    12  # mantissa bits of float32 that HF32 (1 sign, 8 exponent, 11 mantissa bits) does not have
)
_THREADLESS = 1 << 18  # multiplications up to which OpenBLAS uses one thread
EXACT_BLOCK = 16
"""Products that the exact mode sums before it rounds."""


def _mmad(a: Array, b: Array) -> Array:
    """C = A · B, or C + A · B, or bias + A · B; float32 or int32 sums."""
    return a @ b


_MMAD = register(
    Instruction(
        "mmad", Pipe.M, "mmad", (float32, int32), _mmad, "[bias, ]MmadParams", accumulates=True
    )
)


def mmad(
    dst: LocalTensor,
    fm: LocalTensor,
    filter: LocalTensor,
    *arguments: Any,
    bias: LocalTensor | None = None,
    params: MmadParams | None = None,
) -> None:
    """C (+)= A · B with (dst, fm, filter, [bias, ]params): dst in L0C, fm = A in L0A, filter = B in L0B, bias in BT.

    With `bias` C starts from it, one value a column. A single row (m = 1) is read from L0A as a plain row of k
    elements (GEMV). A size of 0: nothing happens.
    """
    rest = list(arguments)
    if rest and isinstance(rest[0], LocalTensor):
        bias = rest.pop(0)
    if rest:
        params = rest.pop(0)
    if rest:
        fault(
            "ILLEGAL_PARAM",
            "form",
            "mmad takes (dst, fm, filter, [bias, ]params), got more arguments",
        )
    stream = cube_stream("mmad")
    structure("mmad", "params", params, MmadParams)
    assert params is not None
    registers = stream.registers
    hf32 = (registers.hf32, registers.hf32_toward_zero)
    key = ("mmad", params, hf32, exact_mode())
    issue(
        stream,
        key,
        (dst, fm, filter, bias),
        None,
        lambda: _bind(dst, fm, filter, bias, params, hf32),
    )


def set_hf32_mode(hf32_mode: bool) -> None:
    """Let mmad round float32 operands to HF32 first (twice the rate, 11 mantissa bits), or not."""
    registers = cube_stream("set_hf32_mode").registers
    registers.hf32 = truth("set_hf32_mode", "hf32_mode", hf32_mode)
    registers.changed("hf32")


def set_hf32_trans_mode(trans_mode: bool) -> None:
    """Round to HF32 toward zero (True) or to nearest even (False)."""
    value = truth("set_hf32_trans_mode", "trans_mode", trans_mode)
    cube_stream("set_hf32_trans_mode").registers.hf32_toward_zero = value


def _bind(
    dst: Any, fm: Any, filter_: Any, bias: Any, params: MmadParams, hf32: tuple[bool, bool]
) -> Call:
    pipe = Pipe.M
    _check_operands(dst, fm, filter_)
    m, n, k = (whole("mmad", what, getattr(params, what), 0, _MAX_SIZE) for what in ("m", "n", "k"))
    unit_flag = _unit_flag(params.unit_flag)
    for field in ("en_ssparse", "en_winograd_a", "en_winograd_b"):
        if truth("mmad", field, getattr(params, field)):
            fault("ILLEGAL_PARAM", "unsupported-form", f"mmad: {field} is not simulated")
    whole("mmad", "fm_offset", params.fm_offset, 0, 0, ": it is reserved")
    start = _start_of(dst, bias, params, n)
    extra = f"m:{m},n:{n},k:{k},C from {start[0]}"
    if 0 in (m, n, k):
        return CubeCall(_MMAD, pipe, (), (), _mmad, extra=extra, unit_flag=unit_flag)
    reads: tuple[Access, ...] = (_left(fm, m, k), _right(filter_, k, n))
    result, partial = _result(dst, m, n)
    if start[0] == "L0C":
        reads = (*reads, partial)
    elif start[0] == "BT":
        reads = (*reads, _bias(start[1], n))
    kind = "hf32" if hf32[0] and fm.dtype is float32 else fm.dtype.name
    rounding = hf32[1] if kind == "hf32" else None
    call = CubeCall(
        _MMAD,
        pipe,
        reads,
        (result,),
        _Product(m, n, k, fm.dtype, start[0], rounding, exact_mode(), one_thread_mode()),
        work=blocks(m, FRACTAL_ROWS) * blocks(n, _SIDE) * blocks(k, c0_size(fm.dtype)),
        cost=("mmad", kind),
        extra=extra,
        unit_flag=unit_flag,
    )
    if dst.addr % 1024:
        call.lint = (
            "ALIGNMENT",
            "l0c-not-1024",
            f"mmad: dst {dst.name} starts at L0C byte {dst.addr}, which is no multiple of 1024; Mmad's page asks for "
            f"one (a fractal of C), 512 is what the sanitizer checks",
        )
    elif m == 1 and k > c0_size(fm.dtype):
        call.lint = (
            "INFO",
            "gemv",
            f"mmad: with m = 1 the cube multiplies a vector (GEMV) and takes the {k} elements of fm {fm.name} as one "
            f"plain row, not from the first rows of {blocks(k, c0_size(fm.dtype))} fractals. Loaded in fractals, as "
            f"for m > 1, the numbers are wrong: load a plain row, or take m = 16 and use the first row of C",
        )
    return call


def _check_operands(dst: Any, fm: Any, filter_: Any) -> None:
    pipe, inputs = Pipe.M, tuple(RESULT)
    operand("mmad", "fm", fm, (Space.L0A,), inputs, pipe)
    operand("mmad", "filter", filter_, (Space.L0B,), inputs, pipe)
    if fm.dtype is not filter_.dtype:
        fault(
            "ILLEGAL_PARAM",
            "dtype-mismatch",
            f"mmad: fm {fm.name} is {fm.dtype}, filter {filter_.name} is {filter_.dtype}; both have one type",
            filter_.name,
            pipe=pipe.name,
        )
    operand("mmad", "dst", dst, (Space.L0C,), (RESULT[fm.dtype],), pipe)


def _unit_flag(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        fault(
            "ILLEGAL_PARAM",
            "not-an-integer",
            f"mmad: unit_flag must be 0, 2 or 3, got {value!r}. MmadParams' fourth place is unit_flag: (m, n, k, "
            f"unit_flag, cmatrix_source, cmatrix_init_val); is_bias is given by name",
        )
    return unit_flag_of("mmad", value)


def _start_of(dst: LocalTensor, bias: Any, params: MmadParams, n: int) -> tuple[str, Any]:
    """Return where C starts from ("zero", "L0C" or "BT") and the bias."""
    source = truth("mmad", "cmatrix_source", params.cmatrix_source)
    fresh = truth("mmad", "cmatrix_init_val", params.cmatrix_init_val)
    old_style = truth("mmad", "is_bias", params.is_bias)
    if bias is not None:
        operand("mmad", "bias", bias, (Space.BT,), (dst.dtype,), Pipe.M)
        return "BT", bias
    if old_style:
        return "L0C", None
    if fresh:
        return "zero", None
    if source:  # without a bias operand its address is 0
        return "BT", LocalTensor(dst.dtype, TPosition.C2, 0, n)
    return "L0C", None


def _left(fm: LocalTensor, m: int, k: int) -> Access:
    """Return A's elements in ZZ, or the plain row of GEMV."""
    size, c0 = fm.dtype.size, c0_size(fm.dtype)
    if m == 1:
        return check("mmad", "fm", access_of(fm, (k,), (size,)), fm, Pipe.M)
    shape = (blocks(m, FRACTAL_ROWS), blocks(k, c0), FRACTAL_ROWS, c0)
    strides = (shape[1] * FRACTAL_BYTES, FRACTAL_BYTES, BLOCK_BYTES, size)
    lanes = lanes_of(shape, lambda i, j, r, c: (i * FRACTAL_ROWS + r < m) & (j * c0 + c < k))
    hint = f". A of {m} × {k} takes {shape[0]} × {shape[1]} fractals of {FRACTAL_BYTES} bytes"
    return check("mmad", "fm", access_of(fm, shape, strides, lanes=lanes), fm, Pipe.M, hint)


def _right(filter_: LocalTensor, k: int, n: int) -> Access:
    """Return B's elements in ZN."""
    size, c0 = filter_.dtype.size, c0_size(filter_.dtype)
    shape = (blocks(k, c0), blocks(n, _SIDE), _SIDE, c0)
    strides = (shape[1] * FRACTAL_BYTES, FRACTAL_BYTES, BLOCK_BYTES, size)
    lanes = lanes_of(shape, lambda i, j, r, c: (j * _SIDE + r < n) & (i * c0 + c < k))
    hint = f". B of {k} × {n} takes {shape[0]} × {shape[1]} fractals of {FRACTAL_BYTES} bytes"
    access = access_of(filter_, shape, strides, lanes=lanes)
    return check("mmad", "filter", access, filter_, Pipe.M, hint)


def _result(dst: LocalTensor, m: int, n: int) -> tuple[Access, Access]:
    """Return what mmad writes (whole fractals) and what it needs of C when it accumulates (real lanes)."""
    rows = blocks(m, FRACTAL_ROWS) * FRACTAL_ROWS
    shape = (blocks(n, _SIDE), rows, _SIDE)
    strides = (rows * _SIDE * 4, _SIDE * 4, 4)
    lanes = lanes_of(shape, lambda g, r, c: (r < m) & (g * _SIDE + c < n))
    hint = f". C of {m} × {n} takes {shape[0]} × {rows // 16} fractals of 1024 bytes"
    written = check("mmad", "dst", access_of(dst, shape, strides), dst, Pipe.M, hint)
    return written, access_of(dst, shape, strides, lanes=lanes)


def _bias(bias: LocalTensor, n: int) -> Access:
    return check("mmad", "bias", access_of(bias, (n,), (bias.dtype.size,)), bias, Pipe.M)


class _Product:
    """The numbers of one mmad: sizes, where C starts, and how operands and sums are rounded."""

    __slots__ = ("dtype", "exact", "k", "m", "n", "start", "times", "toward_zero")

    def __init__(
        self,
        m: int,
        n: int,
        k: int,
        dtype: DType,
        start: str,
        toward_zero: bool | None,
        exact: bool,
        one_thread: bool,
    ) -> None:
        self.m, self.n, self.k, self.dtype = m, n, k, dtype
        self.start, self.toward_zero, self.exact = start, toward_zero, exact
        self.times = np.matmul if one_thread else _times

    def __call__(self, fm: Array, filter_: Array, first: Array = None) -> Array:
        rows = blocks(self.m, FRACTAL_ROWS) * FRACTAL_ROWS
        left, right = self._left(fm, rows), self._right(filter_)
        start = self.start
        if self.exact and self.dtype is not int8:
            if start == "L0C":
                first = first.transpose(1, 0, 2).reshape(rows, -1)
            elif start == "BT":
                first = self._columns(first).ravel()
            return _by_groups(_exact_sum(left, right, first))
        if self.dtype is int8:
            total = _by_groups(_times(left, right).astype(np.int64))
        else:
            total = _by_groups(self.times(left, right))
        if start == "L0C":
            total = first + total
        elif start == "BT":
            total = self._columns(first) + total
        return total.astype(np.int32) if self.dtype is int8 else total

    def _columns(self, bias: Array) -> Array:
        """Return what every row of C starts from, by groups of columns."""
        begin = np.zeros(blocks(self.n, _SIDE) * _SIDE, bias.dtype)
        begin[: self.n] = bias
        return begin.reshape(-1, 1, _SIDE)

    def _left(self, fm: Array, rows: int) -> Array:
        """Return A by rows, in the type that it is multiplied in."""
        if self.m == 1:
            left = np.zeros((rows, self.k), fm.dtype)
            left[0] = fm
        elif self.dtype is bfloat16:  # converted on the way
            wide = np.empty((fm.shape[0], FRACTAL_ROWS, fm.shape[1], fm.shape[3]), np.float32)
            wide[...] = fm.transpose(0, 2, 1, 3)
            return wide.reshape(rows, -1)[:, : self.k]
        else:
            left = fm.transpose(0, 2, 1, 3).reshape(rows, -1)[:, : self.k]
        return self._widened(left)

    def _right(self, filter_: Array) -> Array:
        """Return B by rows, in the type that it is multiplied in."""
        depth, groups, side, c0 = filter_.shape
        turned = (
            filter_.view(np.uint16) if self.dtype is bfloat16 else filter_
        )  # plain integers move faster
        right = turned.transpose(0, 3, 1, 2).reshape(depth * c0, groups * side)
        return self._widened(right.view(filter_.dtype)[: self.k])

    def _widened(self, values: Array) -> Array:
        if self.dtype is int8:
            return values.astype(np.float64)
        values = widen(values)
        return values if self.toward_zero is None else to_hf32(values, self.toward_zero)


def _by_groups(values: Array) -> Array:
    """Return C as L0C has it: groups of 16 columns."""
    return values.reshape(len(values), -1, _SIDE).transpose(1, 0, 2)


def _times(left: Array, right: Array) -> Array:
    """Return left · right, some rows at a time.

    A host's matrix library shares larger products among threads, which takes a hundred times as long where other
    processes keep the processor busy (measured: 128³ in 15 ms instead of 0.1).
    """
    rows, depth = left.shape
    columns = right.shape[1]
    step = max(_THREADLESS // (columns * depth), 1)
    result = np.empty((rows, columns), left.dtype)
    for low in range(0, rows, step):
        np.matmul(left[low : low + step], right, out=result[low : low + step])
    return result


def _exact_sum(left: Array, right: Array, begin: Array) -> Array:
    """Add blocks of 16 products to C in order, each block's sum rounded once to float32."""
    total = np.zeros((len(left), right.shape[1]), np.float32)
    if begin is not None:
        total += begin
    left, right = left.astype(np.float64), right.astype(np.float64)
    for low in range(0, left.shape[1], EXACT_BLOCK):
        part = _times(left[:, low : low + EXACT_BLOCK], right[low : low + EXACT_BLOCK])
        total += part.astype(np.float32)
    return total


def to_hf32(values: Array, toward_zero: bool) -> Array:
    """Return float32 values with 11 mantissa bits: truncated, or rounded to nearest even; NaN and infinity stay."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    kept = np.uint32(0xFFFFFFFF << _HF32_DROPPED & 0xFFFFFFFF)
    if not toward_zero:
        last = (bits >> np.uint32(_HF32_DROPPED)) & np.uint32(1)
        bits = np.where(
            np.isfinite(values), bits + np.uint32((1 << (_HF32_DROPPED - 1)) - 1) + last, bits
        )
    rounded = (bits & kept).view(np.float32)
    return np.where(np.isnan(values), values, rounded)
