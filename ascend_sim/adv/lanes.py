"""Scratch space and small steps of the element-wise functions: float32 lanes in UB, one instruction a step.

A function works through its elements in rounds as long as its temporaries fit the temporary buffer. Values are float32
inside; float16 operands are widened first and rounded once at the end. Each step is followed by a barrier of the vector
pipe, because the next one reads its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ascend_sim.lang.queues import program
from isa.arguments import is_whole
from isa.faults import fault
from isa.stream import any_input
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    CoreKind,
    DType,
    Pipe,
    RoundMode,
    Space,
    TPosition,
    float16,
    float32,
    uint8,
)
from isa.vector import arithmetic as va
from isa.vector.choose import select
from isa.vector.compare import compare_scalar
from isa.vector.fill import cast, duplicate
from isa.vector.params import CMPMODE, SelMode

UNIT = 64
"""Lanes of one repeat of float32: rounds and temporaries are multiples of it."""
SELECT_BYTES = 8192
"""The end of UB, which `select` with two tensors uses for itself."""
_KEEPS_OUT = "the end of UB is kept free for select"


def temporary(name: str, given: Any, need: int) -> LocalTensor:
    """Return the temporary buffer of a call as bytes: what the caller gives, else what the TPipe has not handed out.

    Faults where it has fewer than `need` bytes.
    """
    if given is None:
        pipe = program().tpipe
        if pipe is None:
            fault(
                "CAPACITY",
                "no-temporary",
                f"{name}: a kernel without a TPipe passes temp_buffer, {need} bytes at least (uint8)",
            )
        first, end = pipe.unused(Space.UB)
        first = -(-first // BLOCK_BYTES) * BLOCK_BYTES
        length = max(end - SELECT_BYTES + 256 - first, 0) // BLOCK_BYTES * BLOCK_BYTES
        owner = program().session.owner(f"temporary of {name}", Space.UB, first, length)
        given = LocalTensor(uint8, TPosition.VECCALC, first, length, owner=owner)
        where = f"what the TPipe has left ({_KEEPS_OUT})"
        cure = f"Buffers hold {pipe.holders(Space.UB)}: make them smaller, or pass a temp_buffer"
    else:
        cure = "Make it larger"
        if not isinstance(given, LocalTensor) or given.space is not Space.UB:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"{name}: temp_buffer must be a LocalTensor in UB, got {given!r}",
            )
        where = f"temp_buffer {given.name}"
        given = given.reinterpret_cast(uint8)
    if given.length < need:
        fault(
            "CAPACITY",
            "temporary-too-small",
            f"{name}: {where} has {given.length} bytes, {need} are needed at least for its temporaries; more make "
            f"fewer rounds. {cure}",
            given.name,
        )
    return given  # type: ignore[no-any-return]


class Lanes:
    """Temporaries of one round, and the steps on them. Every step writes `dst` and returns it."""

    def __init__(self, name: str, buffer: LocalTensor, temporaries: int, masks: int = 1) -> None:
        self.name = name
        per_lane = 4 * temporaries
        lanes = (buffer.length - masks * BLOCK_BYTES) // (per_lane * 8 + masks) * 8
        self.length = lanes // UNIT * UNIT
        self.count = 0
        floats = buffer.reinterpret_cast(float32)
        self._free = [floats[number * self.length :] for number in range(temporaries)][::-1]
        first = temporaries * self.length * 4
        mask_bytes = -(-self.length // 8 // BLOCK_BYTES) * BLOCK_BYTES
        self._masks = [buffer[first + number * mask_bytes :] for number in range(masks)]

    def new(self) -> LocalTensor:
        """Return a free temporary."""
        return self._free.pop()

    def free(self, *tensors: LocalTensor) -> None:
        """Give temporaries back."""
        self._free.extend(tensors)

    def _done(self, dst: LocalTensor) -> LocalTensor:
        program().pipe_barrier(Pipe.V)
        return dst

    # ---- two operands -------------------------------------------------------------------------

    def add(self, dst: LocalTensor, a: LocalTensor, b: LocalTensor) -> LocalTensor:
        """dst = a + b."""
        va.add(dst, a, b, self.count)
        return self._done(dst)

    def sub(self, dst: LocalTensor, a: LocalTensor, b: LocalTensor) -> LocalTensor:
        """dst = a − b."""
        va.sub(dst, a, b, self.count)
        return self._done(dst)

    def mul(self, dst: LocalTensor, a: LocalTensor, b: LocalTensor) -> LocalTensor:
        """dst = a · b."""
        va.mul(dst, a, b, self.count)
        return self._done(dst)

    def div(self, dst: LocalTensor, a: LocalTensor, b: LocalTensor) -> LocalTensor:
        """dst = a / b."""
        va.div(dst, a, b, self.count)
        return self._done(dst)

    def min(self, dst: LocalTensor, a: LocalTensor, b: LocalTensor) -> LocalTensor:
        """dst = the smaller of a and b."""
        va.min(dst, a, b, self.count)
        return self._done(dst)

    # ---- an operand and a number ----------------------------------------------------------------

    def adds(self, dst: LocalTensor, a: LocalTensor, number: float) -> LocalTensor:
        """dst = a + number."""
        va.adds(dst, a, number, self.count)
        return self._done(dst)

    def muls(self, dst: LocalTensor, a: LocalTensor, number: float) -> LocalTensor:
        """dst = a · number."""
        va.muls(dst, a, number, self.count)
        return self._done(dst)

    def clamp(self, dst: LocalTensor, a: LocalTensor, low: float, high: float) -> LocalTensor:
        """dst = a, at least `low` and at most `high`."""
        va.maxs(dst, a, low, self.count)
        self._done(dst)
        va.mins(dst, dst, high, self.count)
        return self._done(dst)

    def at_most(self, dst: LocalTensor, a: LocalTensor, high: float) -> LocalTensor:
        """dst = a, at most `high`."""
        va.mins(dst, a, high, self.count)
        return self._done(dst)

    def at_least(self, dst: LocalTensor, a: LocalTensor, low: float) -> LocalTensor:
        """dst = a, at least `low`."""
        va.maxs(dst, a, low, self.count)
        return self._done(dst)

    def fill(self, dst: LocalTensor, number: float) -> LocalTensor:
        """dst = number."""
        duplicate(dst, number, self.count)
        return self._done(dst)

    # ---- one operand ----------------------------------------------------------------------------

    def exp(self, dst: LocalTensor, a: LocalTensor) -> LocalTensor:
        """dst = e to the a."""
        va.exp(dst, a, self.count)
        return self._done(dst)

    def ln(self, dst: LocalTensor, a: LocalTensor) -> LocalTensor:
        """dst = natural logarithm of a; lanes outside its range are the caller's business."""
        return self._of_any(va.ln, dst, a)

    def _of_any(
        self, function: Callable[..., None], dst: LocalTensor, a: LocalTensor
    ) -> LocalTensor:
        token = any_input.set(True)
        function(dst, a, self.count)
        any_input.reset(token)
        return self._done(dst)

    def sqrt(self, dst: LocalTensor, a: LocalTensor) -> LocalTensor:
        """dst = square root of a; lanes outside its range are the caller's business."""
        return self._of_any(va.sqrt, dst, a)

    def abs(self, dst: LocalTensor, a: LocalTensor) -> LocalTensor:
        """dst = magnitude of a."""
        va.abs(dst, a, self.count)
        return self._done(dst)

    def whole(self, dst: LocalTensor, a: LocalTensor, mode: RoundMode) -> LocalTensor:
        """dst = a rounded to a whole number."""
        cast(dst, a, mode, self.count)
        return self._done(dst)

    def polynomial(
        self, dst: LocalTensor, x: LocalTensor, coefficients: Sequence[float]
    ) -> LocalTensor:
        """dst = c0 + c1·x + c2·x² + …, by Horner's rule. `dst` is not `x`."""
        self.muls(dst, x, coefficients[-1])
        for coefficient in coefficients[-2:0:-1]:
            self.adds(dst, dst, coefficient)
            self.mul(dst, dst, x)
        return self.adds(dst, dst, coefficients[0])

    # ---- choices --------------------------------------------------------------------------------

    def where(
        self,
        dst: LocalTensor,
        tested: LocalTensor,
        mode: CMPMODE,
        number: float,
        yes: LocalTensor,
        no: LocalTensor,
    ) -> LocalTensor:
        """dst = yes where `tested` compares with a number as `mode` says, else no."""
        mask = self._masks[0]
        compare_scalar(mask, tested, number, mode, self.count)
        self._done(mask)
        select(dst, mask, yes, no, SelMode.VSEL_TENSOR_TENSOR_MODE, self.count)
        return self._done(dst)

    def sign(self, dst: LocalTensor, a: LocalTensor) -> LocalTensor:
        """dst = −1, 0 or 1."""
        big = 2.0**126
        self.muls(dst, a, big)  # twice: the smallest numbers have exponent −149
        self.clamp(dst, dst, -1.0, 1.0)
        self.muls(dst, dst, big)
        return self.clamp(dst, dst, -1.0, 1.0)


def rounds(
    name: str,
    dst: Any,
    sources: Sequence[Any],
    count: Any,
    given: Any,
    temporaries: int,
    dtypes: tuple[DType, ...] = (float16, float32),
) -> Iterator[tuple[Lanes, list[LocalTensor], Callable[[LocalTensor], None]]]:
    """Go through a function's elements: yield the lanes, the sources as float32, and what stores a result.

    `temporaries` counts what the function takes besides its sources.
    """
    count = check_operands(name, dst, sources, count, dtypes)
    if count == 0:
        return
    total = temporaries + len(sources)
    buffer = temporary(name, given, UNIT * 4 * total + 2 * BLOCK_BYTES)
    lanes = Lanes(name, buffer, total)
    for first in range(0, count, lanes.length):
        size = min(lanes.length, count - first)
        lanes.count = -(-size // UNIT) * UNIT
        values = [_widened(lanes, source[first:], size) for source in sources]
        yield lanes, values, _storing(dst[first:], size)
        lanes.free(*values)


def pieces(
    name: str, count: int, dtype: DType, given: Any, parts: int = 1
) -> Iterator[tuple[int, int, list[LocalTensor]]]:
    """Go through `count` elements with temporaries of a type: yield first element, how many, and the temporaries."""
    if count == 0:
        return
    unit = 8 * BLOCK_BYTES
    room = temporary(name, given, unit * parts).reinterpret_cast(dtype)
    length = room.length // parts // unit * unit // dtype.size
    rooms = [room[number * length :] for number in range(parts)]
    for first in range(0, count, length):
        yield first, min(length, count - first), rooms


def check_operands(
    name: str, dst: Any, sources: Sequence[Any], count: Any, dtypes: tuple[DType, ...]
) -> int:
    """Return how many elements a call computes; fault where its operands do not fit it."""
    if program().core_kind is CoreKind.AIC:
        return 0  # as every vector instruction there
    for what, tensor in (("dst", dst), *((f"src{i}", one) for i, one in enumerate(sources))):
        if not isinstance(tensor, LocalTensor) or tensor.space is not Space.UB:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"{name}: {what} must be a LocalTensor in UB, got {tensor!r}",
            )
        if tensor.dtype not in dtypes or tensor.dtype is not dst.dtype:
            fault(
                "ILLEGAL_PARAM",
                "wrong-dtype",
                f"{name}: {what} {tensor.name} is {tensor.dtype}; all operands have one type of "
                f"{', '.join(one.name for one in dtypes)}",
                tensor.name,
            )
    if count is None:
        count = min(source.get_size() for source in sources)
    if not is_whole(count) or count < 0:
        fault(
            "ILLEGAL_PARAM",
            "count-limit",
            f"{name}: count must be a whole number of at least 0, got {count!r}",
        )
    size = int(count) * dst.dtype.size
    for tensor in (dst, *sources):
        if tensor.length < size:
            fault(
                "BOUNDS",
                "tensor-out-of-bounds",
                f"{name}: {count} elements are {size} bytes, {tensor.name} has {tensor.length}",
                tensor.name,
            )
    for source in sources:
        if dst.addr < source.addr + size and source.addr < dst.addr + size:
            fault(
                "ALIAS",
                "operands-overlap",
                f"{name}: dst {dst.name} overlaps its source {source.name}; the function needs places of its own",
                dst.name,
            )
    return int(count)


def _widened(lanes: Lanes, source: LocalTensor, size: int) -> LocalTensor:
    """Return elements of a source as float32; the lanes behind them hold ones."""
    value = lanes.new()
    if size < lanes.count:
        lanes.fill(value, 1.0)
    if source.dtype is float32:
        va.muls(value, source, 1.0, size)
    else:
        cast(value, source, RoundMode.CAST_NONE, size)
    program().pipe_barrier(Pipe.V)
    return value


def _storing(dst: LocalTensor, size: int) -> Callable[[LocalTensor], None]:
    def store(value: LocalTensor) -> None:
        if dst.dtype is float32:
            va.muls(dst, value, 1.0, size)
        else:
            cast(dst, value, RoundMode.CAST_RINT, size)
        program().pipe_barrier(Pipe.V)

    return store
