"""Which bytes one operand of one instruction touches: base, counts, strides, lanes.

An `Access` is data used for everything that depends on addresses: the bounds check, the numpy view that the
meaning works on, the byte ranges that the hazard checker compares, the bank conflicts. Strided and masked
forms are therefore written once, here, and not in each instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isa.faults import fault
from isa.types import BLOCK_BYTES, DType, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.tensor import GlobalTensor, GmBuffer, LocalTensor


GM_PLACE = 100
"""`Access.place` of the first GM allocation; on-chip memories have their Space's number."""


class Access:
    """The bytes that one operand touches: element (i, j, …) lies at base + Σ index · stride.

    `shape` and `strides` (bytes, not negative) are the counts, outermost first; `lanes`, where not None, is a
    boolean array of the trailing axes that says which elements take part. `low` and `high` bound the bytes of the
    elements that take part, `place` numbers the memory or allocation. `contiguous` says that these bytes are all
    of `low` to `high`; `layered` that rows of the outermost axis share bytes, so that a later row overwrites an
    earlier one.
    """

    __slots__ = (
        "base", "buffer", "contiguous", "dtype", "high", "lanes", "layered", "low", "name", "origin", "owner",
        "place", "ranges_cache", "shape", "space", "strides",
    )  # fmt: skip

    def __init__(
        self,
        tensor: GlobalTensor | LocalTensor,
        base: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType,
        lanes: NDArray[np.bool_] | None = None,
    ) -> None:
        self.space: Space = tensor.space
        self.buffer: GmBuffer | None = getattr(tensor, "buffer", None)
        self.owner = getattr(tensor, "owner", None)
        self.name = tensor.name
        self.place = int(self.space) if self.buffer is None else GM_PLACE + self.buffer.index
        self.base = base
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.lanes = lanes
        self.low = base
        self.high = base + dtype.size
        if lanes is None and len(shape) == 1:  # the usual form
            self.high += (shape[0] - 1) * strides[0]
            self.contiguous = strides[0] <= dtype.size or shape[0] == 1
            self.layered = False
        else:
            self._bound()
        self.ranges_cache: NDArray[np.int64] | None = None
        self.origin = self  # the access whose pattern this one repeats

    def _bound(self) -> None:
        """Set the extent, from the elements that take part, and what follows from the strides."""
        size = self.dtype.size
        first, last = 0, 0
        outer = len(self.shape)
        if self.lanes is not None:
            outer -= self.lanes.ndim
            active = np.nonzero(self.lanes)
            offsets = np.zeros(len(active[0]), np.int64)
            for index, stride in zip(active, self.strides[outer:], strict=True):
                offsets += index * stride
            first, last = int(offsets.min()), int(offsets.max())
        for count, stride in zip(self.shape[:outer], self.strides[:outer], strict=True):
            last += (count - 1) * stride
        self.low = self.base + first
        self.high = self.base + last + size
        self.contiguous = self.lanes is None and _gapless(self.shape, self.strides, size)
        row = size
        for count, stride in zip(self.shape[1:], self.strides[1:], strict=True):
            row += (count - 1) * stride
        self.layered = (
            self.shape[0] > 1
            and self.strides[0] < row
            and not _apart(self.shape, self.strides, size)
        )

    def moved(self, base: int) -> Access:
        """Return the same pattern from another base in the same memory."""
        other = Access.__new__(Access)
        shift = base - self.base
        other.space, other.buffer, other.place = self.space, self.buffer, self.place
        other.owner, other.name, other.dtype = self.owner, self.name, self.dtype
        other.base, other.shape, other.strides = base, self.shape, self.strides
        other.lanes, other.contiguous, other.layered = self.lanes, self.contiguous, self.layered
        other.low, other.high = self.low + shift, self.high + shift
        other.ranges_cache = None
        other.origin = self.origin
        return other

    @property
    def elements(self) -> int:
        """How many elements the access names, inactive lanes included."""
        return _product(self.shape)

    def view(self, data: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Return the elements as a numpy view on the bytes of their memory."""
        return np.ndarray(self.shape, self.dtype.numpy, data, self.base, self.strides)

    def byte_view(self, data: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return one entry a byte, shape (…, dtype.size), on an array that has one entry for each byte."""
        return np.ndarray(
            (*self.shape, self.dtype.size), data.dtype, data, self.base, (*self.strides, 1)
        )

    def ranges(self) -> NDArray[np.int64]:
        """Return the bytes touched as sorted, disjoint, non-adjacent ranges: rows of (first, past last)."""
        if self.origin is not self:
            return self.origin.ranges() + (self.base - self.origin.base)
        if self.ranges_cache is None:
            self.ranges_cache = self._ranges()
        return self.ranges_cache

    def _ranges(self) -> NDArray[np.int64]:
        if self.contiguous:
            return np.array([[self.low, self.high]], np.int64)
        if self.lanes is None:
            return byte_ranges(self.shape, self.strides, self.dtype.size, self.base)
        axes = list(zip(self.shape, self.strides, strict=True))
        outer = len(axes) - self.lanes.ndim
        starts = _all_sums(np.full(1, self.base, np.int64), axes[:outer])
        offsets = _all_sums(np.zeros(1, np.int64), axes[outer:])
        starts = (starts[:, None] + offsets[self.lanes.ravel()]).ravel()
        return merge_ranges(np.stack([starts, starts + self.dtype.size], axis=1))

    def overlaps(self, other: Access) -> bool:
        """Return whether the two accesses share a byte."""
        if self.low >= other.high or other.low >= self.high:
            return False
        if self.place != other.place or self.buffer is not other.buffer:
            return False
        if self.contiguous and other.contiguous:
            return True
        return ranges_overlap(self.ranges(), other.ranges())

    def covers(self, other: Access) -> bool:
        """Return whether this access certainly touches every byte of the other one; False may mean unknown."""
        if self.low > other.low or self.high < other.high:
            return False
        if self.place != other.place or self.buffer is not other.buffer:
            return False
        return self.contiguous or (
            self.base == other.base
            and self.shape == other.shape
            and self.strides == other.strides
            and self.lanes is other.lanes
            and self.dtype.size == other.dtype.size
        )

    def __repr__(self) -> str:
        return f"<Access {self.name} {self.space.name}[{self.low}:{self.high}] {self.shape}×{self.strides}>"


def byte_ranges(
    shape: tuple[int, ...], strides: tuple[int, ...], size: int, base: int
) -> NDArray[np.int64]:
    """Return the bytes of elements of `size` bytes at base + Σ index · stride, as `Access.ranges` does."""
    axes = list(zip(shape, strides, strict=True))
    run = size
    while axes and axes[-1][1] == run:  # the innermost axes that leave no gap are one run
        run *= axes.pop()[0]
    starts = _all_sums(np.full(1, base, np.int64), axes)
    return merge_ranges(np.stack([starts, starts + run], axis=1))


def _all_sums(starts: NDArray[np.int64], axes: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Return each start plus index · stride of each axis (count, stride), the last axis the fastest."""
    for count, stride in axes:
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
    return starts


def _product(counts: tuple[int, ...]) -> int:
    result = 1
    for count in counts:
        result *= count
    return result


def _gapless(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    """Return whether elements of `size` bytes at all sums of index · stride leave no byte out."""
    run = size
    for stride, count in sorted(zip(strides, shape, strict=True)):
        if count > 1:
            if stride > run:
                return False
            run += stride * (count - 1)
    return True


def _apart(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    """Return whether elements of `size` bytes certainly share none, though rows may lie between each other's bytes."""
    run = size
    for stride, count in sorted(zip(strides, shape, strict=True)):
        if count > 1:
            if stride < run:
                return False
            run += stride * (count - 1)
    return True


def merge_ranges(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the union of byte ranges (rows of first, past last) as sorted, disjoint, non-adjacent rows."""
    if len(ranges) <= 1:
        return ranges
    if not np.all(ranges[1:, 0] >= ranges[:-1, 0]):
        ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    first = np.empty(len(ranges), bool)
    first[0] = True
    np.greater(ranges[1:, 0], ends[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    last = np.append(starts[1:], len(ranges)) - 1
    return np.stack([ranges[starts, 0], ends[last]], axis=1)


def ranges_overlap(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    """Return whether two sorted, disjoint lists of ranges share a byte."""
    position = np.searchsorted(
        a[:, 1], b[:, 0], side="right"
    )  # first range of a that ends past b's start
    inside = position < len(a)
    return bool(np.any(a[position[inside], 0] < b[inside, 1]))


def intersect_ranges(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes that two sorted, disjoint lists of ranges share."""
    found = []
    j = 0
    for low, high in a.tolist():
        while j < len(b) and b[j, 1] <= low:
            j += 1
        k = j
        while k < len(b) and b[k, 0] < high:
            found.append((max(low, int(b[k, 0])), min(high, int(b[k, 1]))))
            k += 1
    return np.array(found, np.int64).reshape(-1, 2)


def contiguous(
    tensor: GlobalTensor | LocalTensor, count: int, dtype: DType | None = None
) -> Access:
    """Return `count` elements from the tensor's start, side by side."""
    dtype = tensor.dtype if dtype is None else dtype
    base = tensor.offset if tensor.space is Space.GM else tensor.addr  # type: ignore[union-attr]
    return Access(tensor, base, (count,), (dtype.size,), dtype)


def repeats(
    tensor: LocalTensor,
    repeat: int,
    block_stride: int,
    repeat_stride: int,
    lanes: NDArray[np.bool_],
    blocks: int,
) -> Access:
    """Return the mask form's elements: `repeat` × `blocks` data blocks of the tensor's type.

    Strides are in 32-byte blocks; `lanes` (blocks × elements of a block) says which lanes take part. Whole
    trailing blocks without an active lane are left out.
    """
    size = tensor.dtype.size
    per_block = BLOCK_BYTES // size
    used = lanes.reshape(blocks, per_block)
    active = np.flatnonzero(used.any(axis=1))
    blocks = int(active[-1]) + 1 if len(active) else 0
    used = used[:blocks]
    return Access(
        tensor,
        tensor.addr,
        (repeat, blocks, per_block),
        (repeat_stride * BLOCK_BYTES, block_stride * BLOCK_BYTES, size),
        tensor.dtype,
        None if used.all() else used,
    )


def check_bounds(
    access: Access,
    tensor: GlobalTensor | LocalTensor,
    what: str,
    capacity: int,
    pipe: str,
    hint: str = "",
) -> None:
    """Fault when the access leaves its tensor, its memory or its GM allocation.

    `what` is the instruction and operand for the message ("add: dst"); `capacity` the memory's bytes.
    """
    check_extent(access.low, access.high, tensor, what, capacity, pipe, hint)


def check_extent(
    low: int,
    high: int,
    tensor: GlobalTensor | LocalTensor,
    what: str,
    capacity: int,
    pipe: str,
    hint: str = "",
) -> None:
    """Fault when bytes `low` to `high` leave the tensor, its memory or its GM allocation; see `check_bounds`."""
    if tensor.space is Space.GM:
        start = tensor.offset  # type: ignore[union-attr]
        _check_allocation(low, high, tensor, what, pipe, hint)
    else:
        start = tensor.addr  # type: ignore[union-attr]
        if high > capacity:
            name = tensor.space.name
            fault(
                "BOUNDS",
                "memory-out-of-bounds",
                f"{what} {tensor.name} touches {name} bytes {low} to {high}; {name} has {capacity} bytes, so "
                f"{high - capacity} are outside{hint}",
                tensor.name,
                (low, high),
                pipe,
            )
    end = start + tensor.length
    if high > end:
        room = max(tensor.length, 0)
        fault(
            "BOUNDS",
            "tensor-out-of-bounds",
            f"{what} {tensor.name} touches {high - start} bytes from its start, the tensor has {room} "
            f"({room // tensor.dtype.size} elements of {tensor.dtype}): {high - end} bytes too many{hint}",
            tensor.name,
            (low, high),
            pipe,
        )


def _check_allocation(
    low: int, high: int, tensor: GlobalTensor | LocalTensor, what: str, pipe: str, hint: str
) -> None:
    size: int = tensor.buffer.nbytes  # type: ignore[union-attr]
    if low < 0 or high > size:
        fault(
            "BOUNDS",
            "gm-out-of-bounds",
            f"{what} {tensor.name} touches bytes {low} to {high} of a GM allocation of {size} bytes: "
            f"{max(high - size, -low)} bytes outside. Shorten the copy or move its start{hint}",
            tensor.name,
            (low, high),
            pipe,
        )
