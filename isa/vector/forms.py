"""The calling forms of vector instructions, written once: count, mask with repeats, bit mask.

A decorated function is the meaning alone, from the sources' values to the destination's. What it returns is
the function that kernels call: it binds the operands, checks them and issues the call. A bound call is kept by
the stream, so that a loop over the same buffers binds once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous, ranges_overlap, repeats
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import BinaryRepeatParams, UnaryRepeatParams
from isa.stream import ALL_LANES, current
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, BLOCKS_PER_REPEAT, REPEAT_BYTES, CoreKind, DType, Pipe, Space

MAX_REPEAT = 255
MAX_STRIDE = 255
_PIPE = Pipe.V.name

COUNT_FORM = "count"
ALL_FORMS = "count; mask, repeat_times, repeat_params; mask list, repeat_times, repeat_params"


def check_local(name: str, operand: str, tensor: Any, dtypes: tuple[DType, ...]) -> None:
    """Fault unless the operand is a UB tensor of a type that the instruction takes, on a 32-byte border."""
    if not isinstance(tensor, LocalTensor):
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            f"{name}: {operand} must be a LocalTensor, got {type(tensor).__name__}. Vector instructions work on UB: "
            f"copy the data in first",
            pipe=_PIPE,
        )
    if tensor.space is not Space.UB:
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {operand} {tensor.name} is at {tensor.position.name}, which is {tensor.space.name}. Vector "
            f"instructions take VECIN, VECOUT or VECCALC (UB)",
            tensor.name,
            pipe=_PIPE,
        )
    if tensor.dtype not in dtypes:
        allowed = ", ".join(dtype.name for dtype in dtypes)
        hint = ""
        if tensor.dtype.name == "bfloat16":
            hint = ". bfloat16 has no arithmetic on the 910B: cast to float32 first"
        fault(
            "ILLEGAL_PARAM",
            "dtype-not-supported",
            f"{name}: {operand} {tensor.name} is {tensor.dtype}, the 910B takes {allowed}{hint}",
            tensor.name,
            pipe=_PIPE,
        )
    if tensor.addr % BLOCK_BYTES:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {operand} {tensor.name} starts at UB byte {tensor.addr}, which is {tensor.addr % BLOCK_BYTES} "
            f"past a {BLOCK_BYTES}-byte border. Vector operands start on one: {BLOCK_BYTES // tensor.dtype.size} "
            f"elements of {tensor.dtype}",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            _PIPE,
        )


def check_same_dtype(name: str, dst: LocalTensor, sources: tuple[tuple[str, LocalTensor], ...]) -> None:
    """Fault unless every source has the destination's element type."""
    for operand, tensor in sources:
        if tensor.dtype is not dst.dtype:
            fault(
                "ILLEGAL_PARAM",
                "dtype-mismatch",
                f"{name}: {operand} {tensor.name} is {tensor.dtype}, dst {dst.name} is {dst.dtype}. All operands need "
                f"one type: use cast, or reinterpret_cast if the bits are meant",
                tensor.name,
                pipe=_PIPE,
            )


def check_integer(name: str, what: str, value: Any, low: int, high: int | None, why: str = "") -> int:
    """Return a parameter as an int; fault unless it is a whole number within its limits."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        fault("ILLEGAL_PARAM", "not-an-integer", f"{name}: {what} must be a whole number, got {value!r}", pipe=_PIPE)
    if value < low or (high is not None and value > high):
        limit = f"{low} to {high}" if high is not None else f"at least {low}"
        fault(
            "ILLEGAL_PARAM",
            f"{what.replace('_', '-')}-limit",
            f"{name}: {what} is {value}, allowed is {limit}{why}",
            pipe=_PIPE,
        )
    return int(value)


def check_repeat(name: str, repeat: Any) -> int:
    """Return the repeat count; fault when it does not fit the instruction's 8 bits."""
    return check_integer(
        name,
        "repeat_times",
        repeat,
        0,
        MAX_REPEAT,
        ": the field has 8 bits, on the hardware 256 wraps to 0 and nothing happens. Split the call",
    )


def lane_mask(name: str, mask: Any, lanes: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of `lanes` lanes take part: a count of leading lanes, or a list of 64-bit words."""
    if isinstance(mask, (list, tuple)):
        words = 2 if lanes > 64 else 1
        if len(mask) not in (words, 2):
            fault(
                "ILLEGAL_PARAM",
                "mask-length",
                f"{name}: a bit mask for {lanes} lanes has {words} words of 64 bits, got {len(mask)}",
                pipe=_PIPE,
            )
        bits = 0
        for position, word in enumerate(mask):
            bits |= check_integer(name, "mask_word", word, 0, (1 << 64) - 1) << (64 * position)
        return np.array([(bits >> lane) & 1 for lane in range(lanes)], bool)
    count = check_integer(name, "mask", mask, 0, None)
    return np.arange(lanes) < count


def _register_mask(name: str, lanes: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    registers = current.get().registers
    return lane_mask(name, [registers.mask_low, registers.mask_high], lanes)


def freeze(mask: Any) -> Any:
    """Return a mask in a form that can be a dictionary key."""
    return tuple(mask) if isinstance(mask, list) else mask


def check_core(name: str) -> Any:
    """Return the current stream; None on a cube core, where vector instructions do nothing."""
    stream = current.get(None)
    if stream is None:
        fault(
            "HOST",
            "no-kernel",
            f"{name} was called outside a kernel: launch the kernel with kernel[blocks](…) or ascend_sim.launch",
        )
    return stream if stream.core_kind is CoreKind.AIV else None


class Operand:
    """One vector operand before it is bound: its tensor and its strides, in data blocks."""

    __slots__ = ("block_stride", "name", "repeat_stride", "tensor")

    def __init__(self, name: str, tensor: LocalTensor, block_stride: int = 1, repeat_stride: int = 8) -> None:
        self.name = name
        self.tensor = tensor
        self.block_stride = block_stride
        self.repeat_stride = repeat_stride


def bind_count(
    instruction: Instruction,
    dst: Operand,
    sources: list[Operand],
    count: Any,
    meaning: Callable[..., Any],
    cost_dtype: str,
) -> Call:
    """Bind the count form: `count` contiguous elements in counter mode, one instruction whatever the length."""
    name = instruction.name
    number = check_integer(name, "count", count, 0, None)
    if number == 0:
        return Call(instruction, Pipe.V, (), (), meaning, cost=(instruction.cost, cost_dtype))
    operands = [dst, *sources]
    accesses = []
    for operand in operands:
        access = contiguous(operand.tensor, number)
        check_bounds(access, operand.tensor, f"{name}: {operand.name}", current.get().capacity(Space.UB), _PIPE)
        accesses.append(access)
    widest = max(operand.tensor.dtype.size for operand in operands)
    work = -(-number * widest // REPEAT_BYTES)
    for operand, access in zip(sources, accesses[1:], strict=True):
        _check_overlap_count(name, accesses[0], operand, access)
    geometry = tuple(
        (
            position == 0,
            operand.tensor.addr,
            BLOCK_BYTES,
            REPEAT_BYTES * operand.tensor.dtype.size // widest,
            BLOCKS_PER_REPEAT * operand.tensor.dtype.size // widest,
        )
        for position, operand in enumerate(operands)
    )
    return Call(
        instruction,
        Pipe.V,
        tuple(accesses[1:]),
        (accesses[0],),
        meaning,
        work=work,
        cost=(instruction.cost, cost_dtype),
        geometry=geometry,
        extra=f"count:{number}",
    )


def bind_repeats(
    instruction: Instruction,
    dst: Operand,
    sources: list[Operand],
    mask: Any,
    repeat_times: Any,
    meaning: Callable[..., Any],
    cost_dtype: str,
    *,
    set_mask: bool,
) -> Call:
    """Bind the mask form: `repeat_times` repeats of eight data blocks with strides; inactive lanes keep dst."""
    name = instruction.name
    operands = [dst, *sources]
    for operand in operands:
        what = operand.name
        operand.block_stride = check_integer(name, f"{what}_blk_stride", operand.block_stride, 0, MAX_STRIDE)
        operand.repeat_stride = check_integer(name, f"{what}_rep_stride", operand.repeat_stride, 0, MAX_STRIDE)
    widest = max(operand.tensor.dtype.size for operand in operands)
    lanes_per_repeat = REPEAT_BYTES // widest
    registers = current.get().registers
    if registers.counter_mode:
        total = registers.mask_low if not set_mask else check_integer(name, "mask", mask, 0, None)
        repeat = -(-total // lanes_per_repeat)
        tail = total - (repeat - 1) * lanes_per_repeat if repeat else 0
        lanes = np.ones(lanes_per_repeat, bool)
    else:
        repeat = check_repeat(name, repeat_times)
        tail = lanes_per_repeat
        lanes = lane_mask(name, mask, lanes_per_repeat) if set_mask else _register_mask(name, lanes_per_repeat)
    if repeat == 0 or not lanes.any():
        return Call(instruction, Pipe.V, (), (), meaning, cost=(instruction.cost, cost_dtype), work=repeat)
    if dst.block_stride == 0:
        fault(
            "ILLEGAL_PARAM",
            "dst-block-stride-zero",
            f"{name}: dst_blk_stride 0 writes all eight blocks of a repeat to one place; it must be at least 1",
            dst.tensor.name,
            pipe=_PIPE,
        )
    if tail != lanes_per_repeat:
        return _bind_counter_tail(instruction, operands, repeat, tail, lanes_per_repeat, meaning, cost_dtype)
    folded = dst.repeat_stride == 0 and repeat > 1
    if folded:
        _check_fold(instruction, dst, sources)
    accesses = []
    for operand in operands:
        size = operand.tensor.dtype.size
        own = 1 if folded and (operand is dst or operand is sources[-1]) else repeat
        access = repeats(
            operand.tensor,
            own,
            operand.block_stride,
            operand.repeat_stride,
            lanes,
            lanes_per_repeat * size // BLOCK_BYTES,
        )
        check_bounds(access, operand.tensor, f"{name}: {operand.name}", current.get().capacity(Space.UB), _PIPE)
        accesses.append(access)
    if not folded:
        for operand, access in zip(sources, accesses[1:], strict=True):
            _check_overlap_repeats(name, accesses[0], operand, access)
    geometry = tuple(
        (
            position == 0,
            operand.tensor.addr,
            operand.block_stride * BLOCK_BYTES,
            operand.repeat_stride * BLOCK_BYTES,
            access.shape[1],
        )
        for position, (operand, access) in enumerate(zip(operands, accesses, strict=True))
    )
    return Call(
        instruction,
        Pipe.V,
        tuple(accesses[1:]),
        (accesses[0],),
        partial(_fold, meaning) if folded else meaning,
        work=repeat,
        cost=(instruction.cost, cost_dtype),
        geometry=geometry,
        extra=f"mask:{_mask_text(lanes)}",
    )


def _mask_text(lanes: np.ndarray[Any, np.dtype[np.bool_]]) -> str:
    active = int(lanes.sum())
    return str(active) if lanes[:active].all() else "bits"


def _bind_counter_tail(
    instruction: Instruction,
    operands: list[Operand],
    repeat: int,
    tail: int,
    lanes_per_repeat: int,
    meaning: Callable[..., Any],
    cost_dtype: str,
) -> Call:
    """Bind counter mode whose last repeat is partial: a lane mask that spans all repeats."""
    accesses = []
    for operand in operands:
        size = operand.tensor.dtype.size
        per_block = BLOCK_BYTES // size
        blocks = lanes_per_repeat // per_block
        lanes = np.ones((repeat, blocks, per_block), bool)
        lanes[-1] = (np.arange(lanes_per_repeat) < tail).reshape(blocks, per_block)
        access = Access(
            operand.tensor,
            operand.tensor.addr,
            (repeat, blocks, per_block),
            (operand.repeat_stride * BLOCK_BYTES, operand.block_stride * BLOCK_BYTES, size),
            operand.tensor.dtype,
            lanes,
        )
        ranges = access.ranges()
        access.low, access.high = int(ranges[0, 0]), int(ranges[-1, 1])
        check_bounds(
            access, operand.tensor, f"{instruction.name}: {operand.name}", current.get().capacity(Space.UB), _PIPE
        )
        accesses.append(access)
    return Call(
        instruction,
        Pipe.V,
        tuple(accesses[1:]),
        (accesses[0],),
        meaning,
        work=repeat,
        cost=(instruction.cost, cost_dtype),
        extra=f"count:{(repeat - 1) * lanes_per_repeat + tail}",
    )


def _fold(meaning: Callable[..., Any], *values: Any) -> Any:
    """Accumulate all repeats of the first source into one block, in order, one rounding a repeat."""
    first, total = values[0], values[1].copy()
    for row in range(first.shape[0]):
        total[0] = meaning(first[row], total[0])
    return total


def _check_fold(instruction: Instruction, dst: Operand, sources: list[Operand]) -> None:
    same = len(sources) == 2 and sources[1].tensor.addr == dst.tensor.addr and sources[1].repeat_stride == 0
    if instruction.accumulates and same and sources[1].block_stride == dst.block_stride:
        return
    fault(
        "ILLEGAL_PARAM",
        "dst-repeat-stride-zero",
        f"{instruction.name}: dst_rep_stride 0 makes every repeat write the same bytes. Only add, sub, mul, max, min, "
        f"add_relu and sub_relu may do so, with src1 the same tensor as dst and src1_rep_stride 0 (accumulation)",
        dst.tensor.name,
        pipe=_PIPE,
    )


def _check_overlap_count(name: str, dst: Access, operand: Operand, source: Access) -> None:
    if dst.low >= source.high or source.low >= dst.high or dst.low == source.low:
        return
    distance = dst.low - source.low
    if distance > 0 or -distance < REPEAT_BYTES:
        _overlap_fault(name, dst, operand, source)


def _check_overlap_repeats(name: str, dst: Access, operand: Operand, source: Access) -> None:
    """Check the overlap rules of one instruction between the destination and one source.

    Within a repeat they must be the same addresses or disjoint; a later repeat must not read what an earlier one
    wrote. Reading what a later repeat overwrites is allowed.
    """
    if not dst.overlaps(source):
        return
    rows = dst.shape[0]
    written = [_repeat_ranges(dst, row) for row in range(rows)]
    read = [_repeat_ranges(source, row) for row in range(rows)]
    for row in range(rows):
        same = np.array_equal(written[row], read[row])
        if not same and ranges_overlap(written[row], read[row]):
            _overlap_fault(name, dst, operand, source)
        low, high = written[row][0, 0], written[row][-1, 1]
        for later in range(row + 1, rows):
            other = read[later]
            if other[0, 0] < high and low < other[-1, 1] and ranges_overlap(written[row], other):
                _overlap_fault(name, dst, operand, source)


def _repeat_ranges(access: Access, row: int) -> Any:
    one = Access.__new__(Access)
    one.base = access.base + row * access.strides[0]
    one.shape, one.strides, one.dtype, one.lanes = access.shape[1:], access.strides[1:], access.dtype, access.lanes
    one.contiguous = False
    return one._ranges()


def _overlap_fault(name: str, dst: Access, operand: Operand, source: Access) -> None:
    fault(
        "ILLEGAL_PARAM",
        "operand-overlap",
        f"{name}: dst {dst.name} (UB bytes {dst.low} to {dst.high}) and {operand.name} {source.name} (UB bytes "
        f"{source.low} to {source.high}) overlap, but are not the same addresses repeat by repeat: a repeat would "
        f"read what another one wrote. Use equal addresses or separate bytes",
        dst.name,
        (max(dst.low, source.low), min(dst.high, source.high)),
        _PIPE,
    )


@lru_cache(maxsize=1024)
def _mask_words(mask: Any, lanes: int) -> tuple[int, int]:
    """Return the mask register's (low, high) words for a mask argument."""
    bits = sum(1 << lane for lane in np.flatnonzero(lane_mask("mask", mask, lanes)).tolist())
    return bits & ALL_LANES, bits >> 64


def issue(
    instruction: Instruction,
    dst: LocalTensor,
    sources: tuple[LocalTensor, ...],
    scalar: Any,
    count_or_mask: Any,
    repeat_times: Any,
    params: Any,
    is_set_mask: bool,
    bind: Callable[[], Call],
) -> None:
    """Issue one vector call, binding it if the stream does not know it yet."""
    stream = current.get(None)
    if stream is None or stream.core_kind is not CoreKind.AIV:
        stream = check_core(instruction.name)
        if stream is None:
            return
    try:
        if repeat_times is None and scalar is None and type(count_or_mask) is int:
            key: Any = (instruction.name, dst.key, *[source.key for source in sources], count_or_mask)
        else:
            key = (instruction.name, dst.key, *[s.key for s in sources], scalar, count_or_mask, repeat_times, params)
        if repeat_times is not None and (not is_set_mask or stream.registers.counter_mode):
            key = (key, is_set_mask, stream.registers.key())
        call = stream.calls.get(key)
    except (TypeError, AttributeError):  # a mask list, or an operand that is no tensor: bound each time
        key, call = None, None
    if call is None:
        call = bind()
        if key is not None:
            stream.calls[key] = call
    if repeat_times is None:
        issue_count(stream, call)
        return
    if is_set_mask and not stream.registers.counter_mode:
        widest = dst.dtype.size
        for source in sources:
            widest = source.dtype.size if source.dtype.size > widest else widest
        registers = stream.registers
        registers.mask_low, registers.mask_high = _mask_words(count_or_mask, REPEAT_BYTES // widest)
    stream.issue(call, 4)


def issue_count(stream: Any, call: Call) -> None:
    """Issue a count form: counter mode inside, so the mask register is all ones and in norm mode afterwards."""
    registers = stream.registers
    registers.mask_low = registers.mask_high = ALL_LANES
    registers.counter_mode = False
    stream.issue(call, 4)


def split_forms(name: str, count: Any, mask: Any, repeat_times: Any, params: Any, is_set_mask: Any) -> tuple[Any, ...]:
    """Return (count or mask, repeat_times, params, is_set_mask) from the overloads' arguments, or fault."""
    if isinstance(repeat_times, bool) and params is None:  # (…, count, is_set_mask)
        is_set_mask, repeat_times = repeat_times, None
    if mask is not None:
        if count is not None:
            fault("ILLEGAL_PARAM", "form", f"{name} takes count, or mask with repeat_times and repeat_params, not both")
        count = mask
    if count is None:
        fault("ILLEGAL_PARAM", "form", f"{name} needs count, or mask, repeat_times and repeat_params")
    if repeat_times is None and (params is not None or isinstance(count, (list, tuple))):
        fault("ILLEGAL_PARAM", "form", f"{name}: a mask needs repeat_times and repeat_params as well")
    if repeat_times is not None and params is None:
        fault("ILLEGAL_PARAM", "form", f"{name}: the mask form needs repeat_params (strides) after repeat_times")
    if not isinstance(is_set_mask, (bool, np.bool_)):
        fault("ILLEGAL_PARAM", "form", f"{name}: is_set_mask must be True or False, got {is_set_mask!r}")
    return count, repeat_times, params, is_set_mask


def check_params(name: str, params: Any, expected: type) -> None:
    """Fault unless the stride structure is the one that the instruction takes."""
    if not isinstance(params, expected):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"{name}: repeat_params must be {expected.__name__}, got {type(params).__name__}",
            pipe=_PIPE,
        )


def binary(
    *dtypes: DType, cost: str | None = None, accumulates: bool = False, reads_dst: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a two-source instruction of its meaning. With `reads_dst` the meaning gets dst as third value."""

    def decorate(meaning: Callable[..., Any]) -> Callable[..., None]:
        name = meaning.__name__
        record = register(Instruction(name, Pipe.V, cost or name, dtypes, meaning, ALL_FORMS, accumulates))

        def function(
            dst: LocalTensor,
            src0: LocalTensor,
            src1: LocalTensor,
            count: Any = None,
            repeat_times: Any = None,
            repeat_params: BinaryRepeatParams | None = None,
            is_set_mask: bool = True,
            *,
            mask: Any = None,
        ) -> None:
            if repeat_times is None and type(count) is int and mask is None:  # the count form, bound before
                stream = current.get(None)
                try:
                    call = stream.calls.get((name, dst.key, src0.key, src1.key, count))  # type: ignore[union-attr]
                except AttributeError:
                    call = None
                if call is not None:
                    issue_count(stream, call)
                    return
            if repeat_times is not None or mask is not None or count is None or not is_set_mask:
                count, repeat_times, repeat_params, is_set_mask = split_forms(
                    name, count, mask, repeat_times, repeat_params, is_set_mask
                )

            def bind() -> Call:
                for operand, tensor in (("dst", dst), ("src0", src0), ("src1", src1)):
                    check_local(name, operand, tensor, dtypes)
                check_same_dtype(name, dst, (("src0", src0), ("src1", src1)))
                params = repeat_params if repeat_params is not None else BinaryRepeatParams()
                check_params(name, params, BinaryRepeatParams)
                target = Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride)
                sources = [
                    Operand("src0", src0, params.src0_blk_stride, params.src0_rep_stride),
                    Operand("src1", src1, params.src1_blk_stride, params.src1_rep_stride),
                ]
                if reads_dst:
                    sources.append(Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride))
                return _bind(record, target, sources, count, repeat_times, meaning, dst.dtype.name, is_set_mask)

            issue(
                record, dst, (src0, src1), None, freeze(count), repeat_times, repeat_params, is_set_mask, bind
            )

        return _named(function, meaning)

    return decorate


def unary(*dtypes: DType, cost: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a one-source instruction of its meaning."""

    def decorate(meaning: Callable[..., Any]) -> Callable[..., None]:
        name = meaning.__name__
        record = register(Instruction(name, Pipe.V, cost or name, dtypes, meaning, ALL_FORMS))

        def function(
            dst: LocalTensor,
            src: LocalTensor,
            count: Any = None,
            repeat_times: Any = None,
            repeat_params: UnaryRepeatParams | None = None,
            is_set_mask: bool = True,
            *,
            mask: Any = None,
        ) -> None:
            if repeat_times is None and type(count) is int and mask is None:  # the count form, bound before
                stream = current.get(None)
                try:
                    call = stream.calls.get((name, dst.key, src.key, count))  # type: ignore[union-attr]
                except AttributeError:
                    call = None
                if call is not None:
                    issue_count(stream, call)
                    return
            if repeat_times is not None or mask is not None or count is None or not is_set_mask:
                count, repeat_times, repeat_params, is_set_mask = split_forms(
                    name, count, mask, repeat_times, repeat_params, is_set_mask
                )

            def bind() -> Call:
                check_local(name, "dst", dst, dtypes)
                check_local(name, "src", src, dtypes)
                check_same_dtype(name, dst, (("src", src),))
                return bind_one_source(record, dst, src, count, repeat_times, repeat_params, meaning, is_set_mask)

            issue(record, dst, (src,), None, freeze(count), repeat_times, repeat_params, is_set_mask, bind)

        return _named(function, meaning)

    return decorate


def with_scalar(
    *dtypes: DType, cost: str | None = None, reads_dst: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a source-and-scalar instruction of its meaning; the scalar is first converted to the operand type."""

    def decorate(meaning: Callable[..., Any]) -> Callable[..., None]:
        name = meaning.__name__
        record = register(Instruction(name, Pipe.V, cost or name, dtypes, meaning, ALL_FORMS))

        def function(
            dst: LocalTensor,
            src: LocalTensor,
            scalar: Any,
            count: Any = None,
            repeat_times: Any = None,
            repeat_params: UnaryRepeatParams | None = None,
            is_set_mask: bool = True,
            *,
            mask: Any = None,
        ) -> None:
            if repeat_times is not None or mask is not None or count is None or not is_set_mask:
                count, repeat_times, repeat_params, is_set_mask = split_forms(
                    name, count, mask, repeat_times, repeat_params, is_set_mask
                )

            def bind() -> Call:
                check_local(name, "dst", dst, dtypes)
                check_local(name, "src", src, dtypes)
                check_same_dtype(name, dst, (("src", src),))
                operation = _scalar_meaning(meaning, check_scalar(name, scalar, dst.dtype), reads_dst)
                return bind_one_source(
                    record, dst, src, count, repeat_times, repeat_params, operation, is_set_mask, reads_dst=reads_dst
                )

            key = (type(scalar).__name__, repr(scalar))  # 1 and 1.0, 0.0 and -0.0 are different calls
            issue(record, dst, (src,), key, freeze(count), repeat_times, repeat_params, is_set_mask, bind)

        return _named(function, meaning)

    return decorate


def check_scalar(name: str, scalar: Any, dtype: DType) -> Any:
    """Return a scalar operand as a value of the element type; fault when it is no number or does not fit."""
    if isinstance(scalar, (bool, np.bool_)) or not isinstance(scalar, (int, float, np.number)):
        fault("ILLEGAL_PARAM", "not-a-number", f"{name}: scalar must be a number, got {scalar!r}", pipe=_PIPE)
    if not dtype.is_float:
        limits = np.iinfo(dtype.numpy)
        if scalar != scalar or not limits.min <= scalar <= limits.max:
            fault(
                "ILLEGAL_PARAM",
                "scalar-range",
                f"{name}: scalar {scalar} does not fit {dtype} ({limits.min} to {limits.max})",
                pipe=_PIPE,
            )
        return np.array(int(scalar)).astype(dtype.numpy)[()]
    with np.errstate(all="ignore"):
        return np.array(float(scalar)).astype(dtype.numpy)[()]


def _scalar_meaning(meaning: Callable[..., Any], scalar: Any, reads_dst: bool) -> Callable[..., Any]:
    if reads_dst:
        return lambda src, dst: meaning(src, scalar, dst)
    return lambda src: meaning(src, scalar)


def bind_one_source(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    count: Any,
    repeat_times: Any,
    repeat_params: Any,
    meaning: Callable[..., Any],
    is_set_mask: bool,
    *,
    cost_dtype: str | None = None,
    reads_dst: bool = False,
) -> Call:
    """Bind a one-source instruction in whichever form it was called."""
    params = repeat_params if repeat_params is not None else UnaryRepeatParams()
    check_params(record.name, params, UnaryRepeatParams)
    target = Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride)
    sources = [Operand("src", src, params.src_blk_stride, params.src_rep_stride)]
    if reads_dst:
        sources.append(Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride))
    return _bind(record, target, sources, count, repeat_times, meaning, cost_dtype or dst.dtype.name, is_set_mask)


def _bind(
    record: Instruction,
    target: Operand,
    sources: list[Operand],
    count: Any,
    repeat_times: Any,
    meaning: Callable[..., Any],
    cost_dtype: str,
    is_set_mask: bool,
) -> Call:
    if repeat_times is None:
        return bind_count(record, target, sources, count, meaning, cost_dtype)
    return bind_repeats(
        record, target, sources, count, repeat_times, meaning, cost_dtype, set_mask=is_set_mask
    )


def _named(function: Callable[..., None], meaning: Callable[..., Any]) -> Callable[..., None]:
    function.__name__ = function.__qualname__ = meaning.__name__
    function.__doc__ = meaning.__doc__
    function.__module__ = meaning.__module__
    return function
