"""Binding a vector call: from operands, count or mask, and strides to a checked `Call`.

The count form is counter mode with default strides. The mask form repeats eight data blocks with strides; in counter
mode the mask is an element count and the repeats follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.access import Access, check_extent, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction
from isa.stream import ALL_LANES, current
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, REPEAT_BYTES, Pipe, Space
from isa.vector.checks import MAX_STRIDE, PIPE, check_integer, check_repeat
from isa.vector.masks import (
    MAX_COUNT,
    Lanes,
    lanes_of_mask,
    leading_lanes,
    register_count,
    register_lanes,
)
from isa.vector.overlap import Footprint, check_overlap

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALL = (ALL_LANES, ALL_LANES)


class Operand:
    """One vector operand before it is bound: its tensor and its strides, in data blocks."""

    __slots__ = ("block_stride", "name", "repeat_stride", "tensor")

    def __init__(
        self, name: str, tensor: LocalTensor, block_stride: int = 1, repeat_stride: int = 8
    ) -> None:
        self.name = name
        self.tensor = tensor
        self.block_stride = block_stride
        self.repeat_stride = repeat_stride

    def check_strides(self, name: str) -> None:
        """Fault unless both strides fit their 8 bits."""
        for what in ("block_stride", "repeat_stride"):
            field = f"{self.name}_{'blk' if what == 'block_stride' else 'rep'}_stride"
            setattr(self, what, check_integer(name, field, getattr(self, what), 0, MAX_STRIDE))

    @property
    def strides(self) -> tuple[int, int]:
        """The block and repeat strides in bytes."""
        return self.block_stride * BLOCK_BYTES, self.repeat_stride * BLOCK_BYTES


def strided(operand: Operand, repeat: int, lanes: Lanes) -> Access:
    """Return the elements of `repeat` repeats; whole trailing blocks without an active lane are left out."""
    tensor = operand.tensor
    size = tensor.dtype.size
    block_stride, repeat_stride = operand.strides
    return Access(
        tensor,
        tensor.addr,
        (repeat, lanes.blocks(size), BLOCK_BYTES // size),
        (repeat_stride, block_stride, size),
        tensor.dtype,
        lanes.pattern(size),
    )


class Binder:
    """Binds one call of an instruction: `operands[0]` is the destination.

    `meaning` maps the sources' values to the destination's, `cost_dtype` is the type that the price is looked up
    with.
    """

    def __init__(
        self,
        instruction: Instruction,
        operands: list[Operand],
        meaning: Callable[..., Any],
        cost_dtype: str,
    ) -> None:
        self.instruction = instruction
        self.name = instruction.name
        self.operands = operands
        self.meaning = meaning
        self.cost = (instruction.cost, cost_dtype)
        self.capacity: int = current.get().capacity(Space.UB)
        self.total = REPEAT_BYTES // max(operand.tensor.dtype.size for operand in operands)
        """Lanes of one repeat: eight data blocks of the widest operand."""

    # ---- forms ------------------------------------------------------------------------------

    def count(self, count: Any) -> Call:
        """Bind the count form: `count` elements side by side, one instruction whatever the length.

        It leaves the mask register with all lanes set.
        """
        number = check_integer(self.name, "count", count, 0, None)
        self._side_by_side()
        if number == 0:
            return self._nothing(0, _ALL)
        return self._row(number, _ALL)

    def registers_only(self, count: Any) -> Call:
        """Bind the count form with is_set_mask False: the mask register as it is says what takes part."""
        check_integer(self.name, "count", count, 0, None)
        self._side_by_side()
        return self.mask(None, 1, set_mask=False)

    def mask(self, mask: Any, repeat_times: Any, *, set_mask: bool) -> Call:
        """Bind the mask form: inactive lanes keep dst. With `set_mask` False the mask register says which.

        With `set_mask` the call leaves its mask in the register. In counter mode the mask is an element count and the
        repeats follow from it.
        """
        for operand in self.operands:
            operand.check_strides(self.name)
        repeat = check_repeat(self.name, repeat_times)
        registers = current.get().registers
        if registers.counter_mode:
            number = self._counter(mask) if set_mask else register_count(registers)
            return self._elements(number, (number, 0) if set_mask else None)
        lanes = (
            lanes_of_mask(self.name, mask, self.total)
            if set_mask
            else register_lanes(registers, self.total)
        )
        words = lanes.words if set_mask else None
        if repeat == 0 or not lanes.bits:
            return self._nothing(repeat, words)
        return self._repeats(repeat, lanes, lanes, words, f"mask:{lanes}")

    def _counter(self, mask: Any) -> int:
        if isinstance(mask, (list, tuple)):
            fault(
                "ILLEGAL_PARAM",
                "form",
                f"{self.name}: after set_mask_count the mask is an element count, got a list; "
                f"set_mask_norm makes masks lanes again",
                pipe=PIPE,
            )
        return check_integer(self.name, "mask", mask, 0, MAX_COUNT)

    # ---- patterns ---------------------------------------------------------------------------

    def _side_by_side(self) -> None:
        """Give every operand the strides of the count form."""
        for operand in self.operands:
            operand.block_stride = 1
            operand.repeat_stride = self._blocks(operand)

    def _is_side_by_side(self) -> bool:
        return all(
            operand.block_stride == 1 and operand.repeat_stride == self._blocks(operand)
            for operand in self.operands
        )

    def _blocks(self, operand: Operand) -> int:
        """Return the data blocks that one whole repeat of an operand spans."""
        return self.total * operand.tensor.dtype.size // BLOCK_BYTES

    def _elements(self, number: int, words: tuple[int, int] | None) -> Call:
        """Bind `number` elements in counter mode: whole repeats, the last one in part."""
        if number == 0:
            return self._nothing(0, words)
        if self._is_side_by_side():
            return self._row(number, words)
        repeat = -(-number // self.total)
        lanes = leading_lanes(self.total, self.total)
        last = leading_lanes(number - (repeat - 1) * self.total, self.total)
        return self._repeats(repeat, lanes, last, words, f"count:{number}")

    def _row(self, number: int, words: tuple[int, int] | None) -> Call:
        """Bind `number` elements side by side."""
        accesses = []
        for operand in self.operands:
            access = contiguous(operand.tensor, number)
            self._check_extent(operand, access.low, access.high)
            accesses.append(access)
        repeat = -(-number // self.total)
        lanes = leading_lanes(self.total, self.total)
        last = leading_lanes(number - (repeat - 1) * self.total, self.total)
        self._check_overlaps(repeat, lanes, last, accesses)
        return self._call(repeat, lanes, accesses, self.meaning, words, f"count:{number}")

    def _repeats(
        self, repeat: int, lanes: Lanes, last: Lanes, words: tuple[int, int] | None, extra: str
    ) -> Call:
        """Bind `repeat` repeats of the given lanes, `last` those of the last one."""
        dst = self.operands[0]
        folded = dst.repeat_stride == 0 and repeat > 1
        self._check_dst_strides(lanes if repeat > 1 else last, folded=folded)
        for operand in self.operands:
            self._check_reach(operand, repeat, lanes, last)
        if folded:
            *firsts, own = self.operands[1:]
            accesses = [
                strided(dst, 1, lanes),
                *[self._access(operand, repeat, lanes, last) for operand in firsts],
                strided(own, 1, lanes),
            ]
            meaning: Callable[..., Any] = partial(
                _fold, self.meaning, None if last is lanes else last.active
            )
        else:
            accesses = [self._access(operand, repeat, lanes, last) for operand in self.operands]
            meaning = self._fitted(accesses)
        self._check_overlaps(repeat, lanes, last, accesses, folded=folded)
        return self._call(repeat, lanes, accesses, meaning, words, extra)

    def _access(self, operand: Operand, repeat: int, lanes: Lanes, last: Lanes) -> Access:
        if last is lanes or repeat == 1:
            return strided(operand, repeat, last)
        return self._ragged(operand, repeat, last)

    def _ragged(self, operand: Operand, repeat: int, last: Lanes) -> Access:
        """Return whole repeats with a part of the last one: a lane mask that spans all of them."""
        tensor, blocks = operand.tensor, self._blocks(operand)
        block_stride, repeat_stride = operand.strides
        beyond = tensor.addr + (repeat - 1) * repeat_stride + (blocks - 1) * block_stride
        beyond += BLOCK_BYTES - self.capacity
        if beyond > 0:
            fault(
                "ILLEGAL_PARAM",
                "not-simulated",
                f"{self.name}: counter mode with the strides of {operand.name} {tensor.name} ends so close "
                f"to the end of UB that its last repeat, were it whole, would pass it by {beyond} bytes. The "
                f"simulator needs that room: move the tensor down",
                tensor.name,
                pipe=PIPE,
            )
        lanes = np.ones((repeat, blocks, BLOCK_BYTES // tensor.dtype.size), bool)
        lanes[-1] = last.active.reshape(lanes.shape[1:])
        strides = (repeat_stride, block_stride, tensor.dtype.size)
        return Access(tensor, tensor.addr, lanes.shape, strides, tensor.dtype, lanes)

    def _nothing(self, repeat: int, words: tuple[int, int] | None) -> Call:
        """Bind a call that touches no element; it may still set the mask register."""
        call = Call(self.instruction, Pipe.V, (), (), self.meaning, work=repeat, cost=self.cost)
        call.mask = words
        return call

    def _call(
        self,
        repeat: int,
        lanes: Lanes,
        accesses: list[Access],
        meaning: Callable[..., Any],
        words: tuple[int, int] | None,
        extra: str,
    ) -> Call:
        geometry = []
        for operand in self.operands:
            size = operand.tensor.dtype.size
            blocks = lanes.blocks(size)
            geometry.append(
                (operand is self.operands[0], operand.tensor.addr, *operand.strides, blocks)
            )
        strides = [operand.block_stride for operand in self.operands]
        if any(stride != 1 for stride in strides):
            extra += f",blk:{'/'.join(map(str, strides))}"
        call = Call(
            self.instruction,
            Pipe.V,
            tuple(accesses[1:]),
            (accesses[0],),
            meaning,
            work=repeat,
            cost=self.cost,
            geometry=tuple(geometry),
            extra=extra,
        )
        call.mask = words
        return call

    def _fitted(self, accesses: list[Access]) -> Callable[..., Any]:
        """Return the meaning on operands whose patterns differ in shape (types of unequal width)."""
        shapes = [access.shape for access in accesses]
        if len(set(shapes)) == 1:
            return self.meaning
        widths = [blocks * elements for _, blocks, elements in shapes]
        if len(shapes) == 2 and widths[0] == widths[1]:
            return self.meaning  # the destination takes the result in its own shape
        return partial(_fit, self.meaning, shapes[0][0], min(widths), widths[0])

    # ---- checks -----------------------------------------------------------------------------

    def _check_extent(self, operand: Operand, low: int, high: int) -> None:
        what = f"{self.name}: {operand.name}"
        check_extent(low, high, operand.tensor, what, self.capacity, PIPE)

    def _check_reach(self, operand: Operand, repeat: int, lanes: Lanes, last: Lanes) -> None:
        """Check an operand's bounds before anything of the size of the pattern is built."""
        size = operand.tensor.dtype.size
        block_stride, repeat_stride = operand.strides
        low, high = last.reach(size, block_stride)
        high += (repeat - 1) * repeat_stride
        if last is not lanes and repeat > 1:  # the repeat before it is longer
            low, before = lanes.reach(size, block_stride)
            high = max(high, before + (repeat - 2) * repeat_stride)
        start = operand.tensor.addr
        self._check_extent(operand, start + low, start + high)

    def _check_dst_strides(self, lanes: Lanes, *, folded: bool) -> None:
        dst, *sources = self.operands
        blocks = lanes.blocks(dst.tensor.dtype.size)
        if dst.block_stride == 0 and blocks > 1:
            fault(
                "ILLEGAL_PARAM",
                "dst-block-stride-zero",
                f"{self.name}: dst_blk_stride 0 writes all {blocks} blocks of a repeat to one place; it "
                f"must be at least 1",
                dst.tensor.name,
                pipe=PIPE,
            )
        if folded and not self._folds(dst, sources):
            types = ", ".join(dtype.name for dtype in self.instruction.folds)
            who = (
                f"{self.name} may do so on {types} only, with src1 the same tensor as dst and "
                f"src1_rep_stride 0 (accumulation)"
                if types
                else "Only add, sub, mul, max, min, add_relu and sub_relu may do so (accumulation)"
            )
            fault(
                "ILLEGAL_PARAM",
                "dst-repeat-stride-zero",
                f"{self.name}: dst_rep_stride 0 makes every repeat write the same bytes. {who}",
                dst.tensor.name,
                pipe=PIPE,
            )

    def _folds(self, dst: Operand, sources: list[Operand]) -> bool:
        return dst.tensor.dtype in self.instruction.folds and _in_place(dst, sources[-1])

    def _check_overlaps(
        self,
        repeat: int,
        lanes: Lanes,
        last: Lanes,
        accesses: list[Access],
        *,
        folded: bool = False,
    ) -> None:
        dst, *sources = self.operands
        target, *reads = accesses
        for operand, access in zip(sources, reads, strict=True):
            if access.low >= target.high or target.low >= access.high:
                continue
            if folded and operand is sources[-1]:
                continue  # the sum itself
            if _in_place(dst, operand) and not folded and not target.layered:
                continue
            check_overlap(
                self.name,
                Footprint(dst.tensor, dst.strides, repeat, lanes, last),
                Footprint(operand.tensor, operand.strides, repeat, lanes, last),
                f"{operand.name} {operand.tensor.name}",
            )


def bind_count(
    instruction: Instruction,
    dst: Operand,
    sources: list[Operand],
    count: Any,
    meaning: Callable[..., Any],
    cost_dtype: str,
) -> Call:
    """Bind the count form: see `Binder.count`."""
    return Binder(instruction, [dst, *sources], meaning, cost_dtype).count(count)


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
    """Bind the mask form: see `Binder.mask`."""
    binder = Binder(instruction, [dst, *sources], meaning, cost_dtype)
    return binder.mask(mask, repeat_times, set_mask=set_mask)


def _in_place(dst: Operand, source: Operand) -> bool:
    return (
        dst.tensor.addr == source.tensor.addr
        and dst.tensor.dtype.size == source.tensor.dtype.size
        and dst.strides == source.strides
    )


def _fit(meaning: Callable[..., Any], rows: int, lanes: int, width: int, *values: Any) -> Any:
    """Compute the lanes that all operands name, and fill up to the destination's lanes."""
    result = meaning(*[value.reshape(rows, -1)[:, :lanes] for value in values])
    if lanes == width:
        return result
    filled = np.zeros((rows, width), result.dtype)
    filled[:, :lanes] = result
    return filled


def _fold(
    meaning: Callable[..., Any], last: NDArray[np.bool_] | None, first: Any, total: Any
) -> Any:
    """Accumulate all repeats of the first source into one block, in order, one rounding a repeat."""
    total = total.copy()
    for row in range(len(first) - (last is not None)):
        total[0] = meaning(first[row], total[0])
    if last is not None:
        np.copyto(total[0], meaning(first[-1], total[0]), where=last.reshape(total[0].shape))
    return total
