"""Accesses whose bytes no single pattern of strides names: several pieces, a register, a source picked by data.

They stand in for `Access` everywhere; only what depends on the bytes' places differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from isa.access import Access, merge_ranges
from isa.faults import fault
from isa.instruction import Call
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, DType, Pipe, Space
from isa.vector.checks import check_local

Array = Any
_PIPE = Pipe.V.name
_serials = count(1)


class Views:
    """Views of several places that behave as one flat array where an access's view is used."""

    __slots__ = ("parts", "shape")

    def __init__(self, parts: Sequence[Array]) -> None:
        self.parts = parts
        self.shape = (sum(part.size for part in parts),)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        joined = np.concatenate([part.ravel() for part in self.parts])
        return joined if dtype is None else joined.astype(dtype)

    def __setitem__(self, _: Any, values: Array) -> None:
        if np.ndim(values) == 0:
            for part in self.parts:
                part[...] = values
            return
        first = 0
        for part in self.parts:
            part[...] = values[first : first + part.size].reshape(part.shape)
            first += part.size

    def all(self) -> bool:
        """Return whether every element is true."""
        return all(bool(part.all()) for part in self.parts)


class PieceAccess(Access):
    """The elements of several accesses to one memory, one after the other."""

    __slots__ = ("pieces",)

    def __init__(self, tensor: LocalTensor, pieces: Sequence[Access]) -> None:
        total = sum(piece.elements for piece in pieces)
        first = pieces[0]
        super().__init__(tensor, first.base, (total,), (first.dtype.size,), first.dtype)
        self.pieces = tuple(pieces)
        self.strides = (-next(_serials),)  # no plain access compares equal to it
        self.low = min(piece.low for piece in pieces)
        self.high = max(piece.high for piece in pieces)
        self.contiguous = False

    def view(self, data: Array) -> Any:
        """Return the pieces' views as one."""
        return Views([piece.view(data) for piece in self.pieces])

    def byte_view(self, data: Array) -> Any:
        """Return the pieces' bytes as one."""
        return Views([piece.byte_view(data) for piece in self.pieces])

    def _ranges(self) -> Array:
        return merge_ranges(np.concatenate([piece.ranges() for piece in self.pieces]))

    def covers(self, other: Access) -> bool:
        """Return whether this access certainly touches every byte of the other one."""
        return other is self or any(piece.covers(other) for piece in self.pieces)


class RegisterAccess(Access):
    """A special register that pipe V reads and writes.

    It lies below address 0 of UB, where no tensor is, so that the order checker sees it as a place of its own.
    Its content is `count` elements of `bank` (the core's registers) from `offset`.
    """

    __slots__ = ("bank", "offset")

    def __init__(self, name: str, bank: Array, offset: int, count: int, dtype: DType) -> None:
        stand_in = LocalTensor(dtype, addr=0, tile_size=count)
        stand_in.label = name
        super().__init__(stand_in, offset - bank.nbytes, (count,), (dtype.size,), dtype)
        self.bank = bank
        self.offset = offset

    def view(self, data: Array) -> Array:
        """Return the register; `data`, the bytes of UB, does not hold it."""
        return np.ndarray(self.shape, self.dtype.numpy, self.bank, self.offset)

    def byte_view(self, data: Array) -> Array:
        """Return that every byte has a value: a register always has one."""
        return np.ones((*self.shape, self.dtype.size), data.dtype)


class PickedAccess(Access):
    """A source of which data decides what is read: all of it counts as read.

    As a source it is only uninitialised where nothing of it has been written.
    """

    __slots__ = ()

    def byte_view(self, data: Array) -> Array:
        """Return one entry: whether any byte is set."""
        return np.atleast_1d(super().byte_view(data).any())


class PackedCall(Call):
    """A call whose result may be shorter than its destination: the rest of the destination stays as it is."""

    __slots__ = ()

    def retire(self, memories: Any, result: Any) -> None:
        """Write the elements that there are."""
        access = self.writes[0]
        access.view(memories[access.space])[: len(result)] = result


def counter_access(
    tensor: LocalTensor, total: int, block_stride: int, repeat_stride: int, lanes: int
) -> Access:
    """Return the first `total` elements in lane order of repeats of `lanes` lanes, strides in data blocks."""
    size = tensor.dtype.size
    per_block = BLOCK_BYTES // size
    whole, rest = divmod(total, lanes)
    pieces = []
    inner = (block_stride * BLOCK_BYTES, size)
    if whole:
        shape = (whole, lanes // per_block, per_block)
        pieces.append(
            Access(tensor, tensor.addr, shape, (repeat_stride * BLOCK_BYTES, *inner), tensor.dtype)
        )
    base = tensor.addr + whole * repeat_stride * BLOCK_BYTES
    blocks, tail = divmod(rest, per_block)
    if blocks:
        pieces.append(Access(tensor, base, (blocks, per_block), inner, tensor.dtype))
    if tail:
        start = base + blocks * block_stride * BLOCK_BYTES
        pieces.append(Access(tensor, start, (tail,), (size,), tensor.dtype))
    return pieces[0] if len(pieces) == 1 else PieceAccess(tensor, pieces)


def check_repeat_order(
    name: str,
    dst: LocalTensor,
    written: Callable[[int], Array],
    src: LocalTensor,
    read: Callable[[int], Array],
    repeat: int,
    *,
    within: bool = False,
) -> None:
    """Fault where a repeat reads bytes that an earlier repeat of the same instruction wrote.

    `written(r)` and `read(r)` are the byte ranges of repeat r, rows of (first, past last). With `within`, a
    repeat must not write what it reads itself either.
    """
    writes = [written(row) for row in range(repeat)]
    reads = [read(row) for row in range(repeat)]
    low, high = min(w.min() for w in writes), max(w.max() for w in writes)
    if all(r.max() <= low or r.min() >= high for r in reads):
        return
    starts = np.concatenate([w[:, 0] for w in writes])
    ends = np.concatenate([w[:, 1] for w in writes])
    owner = np.repeat(np.arange(repeat), [len(w) for w in writes])
    for row, ranges in enumerate(reads):
        earlier = owner <= row if within else owner < row
        for first, last in ranges.tolist():
            hit = earlier & (starts < last) & (ends > first)
            if hit.any():
                at = int(np.flatnonzero(hit)[0])
                overlap_fault(name, dst, src, max(first, int(starts[at])), min(last, int(ends[at])))


def check_disjoint(name: str, dst: Access, src: Access, tensor: LocalTensor) -> None:
    """Fault where destination and source share a byte."""
    if dst.overlaps(src):
        fault(
            "ILLEGAL_PARAM",
            "operand-overlap",
            f"{name}: dst {dst.name} (UB bytes {dst.low} to {dst.high}) and {tensor.name} (UB bytes {src.low} to "
            f"{src.high}) overlap. {name} must not write into what it reads: use separate bytes",
            dst.name,
            (max(dst.low, src.low), min(dst.high, src.high)),
            _PIPE,
        )


def overlap_fault(name: str, dst: LocalTensor, src: LocalTensor, first: int, last: int) -> None:
    """Fault: a repeat reads what another one writes."""
    fault(
        "ILLEGAL_PARAM",
        "operand-overlap",
        f"{name}: dst {dst.name} and src {src.name} overlap in UB bytes {first} to {last}, so that a repeat reads what "
        f"an earlier one wrote; repeats are not ordered among each other. Use separate bytes",
        dst.name,
        (first, last),
        _PIPE,
    )


def block_ranges(base: int, block_stride: int, blocks: int, size: int = BLOCK_BYTES) -> Array:
    """Return the byte ranges of `blocks` pieces of `size` bytes, `block_stride` bytes apart."""
    starts = base + np.arange(blocks, dtype=np.int64) * block_stride
    return np.stack([starts, starts + size], axis=1)


def check_place(
    name: str, operand: str, tensor: Any, dtypes: tuple[DType, ...], alignment: int, what: str = ""
) -> None:
    """Fault unless the operand is a UB tensor of a type that the instruction takes, on its border in bytes."""
    stand_in = tensor
    if isinstance(tensor, LocalTensor):
        stand_in = tensor._window(0, tensor.length, tensor.dtype)  # its border is checked below
        stand_in.label = tensor.name
    check_local(name, operand, stand_in, dtypes)
    if tensor.addr % alignment:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {operand} {tensor.name} starts at UB byte {tensor.addr}, which is {tensor.addr % alignment} past "
            f"a {alignment}-byte border. {what or f'Here {operand} starts on one'}: "
            f"{max(alignment // tensor.dtype.size, 1)} elements of {tensor.dtype}",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            _PIPE,
        )


def capacity() -> int:
    """Return the bytes of UB of the core that runs."""
    return int(current.get().capacity(Space.UB))
