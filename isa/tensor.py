"""Tensors: typed windows on bytes. A tensor holds no data and knows no instruction.

A `GlobalTensor` is a window on a GM allocation, a `LocalTensor` one on an on-chip memory. Subscripts give
views, never elements: `t[i]` and `t[i:]` start at element i and keep the remaining length, `t[i:j]`
limits the view as well (an addition to pyasc, so that bounds can be checked). `get_value` and
`set_value` read and write one element through the scalar unit.
"""

from __future__ import annotations

from typing import Any

from isa.address import GlobalAddress, GmBuffer, whole
from isa.arguments import is_whole
from isa.faults import fault
from isa.no_values import NoValues
from isa.types import (
    POSITION_SPACE,
    CacheMode,
    CacheRwMode,
    DType,
    Space,
    TPosition,
    float32,
    int32,
)

__all__ = ["GlobalAddress", "GlobalTensor", "GmBuffer", "LocalTensor", "Owner", "element_type"]


def element_type(what: str, dtype: Any) -> DType:
    """Return an element type; Python's `float` and `int` stand for float32 and int32. Fault for anything else."""
    if dtype is float or dtype is int:
        return float32 if dtype is float else int32
    if not isinstance(dtype, DType):
        fault(
            "ILLEGAL_PARAM",
            "not-a-dtype",
            f"{what} needs an element type such as asc.float16, got {dtype!r}",
        )
    return dtype


def _start_stop(index: Any, size: int, name: str) -> tuple[int, int | None]:
    stop = None
    if isinstance(index, slice):
        if index.step is not None:
            fault(
                "ILLEGAL_PARAM",
                "slice-step",
                f"{name}: a view has no step; use t[start:] or t[start:stop]",
                name,
            )
        start = 0 if index.start is None else whole(f"{name}[…]: the start", index.start)
        if index.stop is not None:
            stop = whole(f"{name}[…]: the stop", index.stop)
    else:
        start = whole(f"{name}[…]: the index", index)
    if start < 0 or (stop is not None and stop < start):
        fault(
            "BOUNDS",
            "view-bounds",
            f"{name}[{start}:{'' if stop is None else stop}] is not inside the tensor's {size} elements: "
            f"a view starts at 0 or later and does not end before it starts",
            tensor=name,
        )
    return start, stop


class GlobalTensor(NoValues):
    """A window on GM. `set_global_buffer` binds it to an address; element type and limits come from there."""

    __slots__ = (
        "_shape_info", "buffer", "dtype", "key", "length", "offset", "read_cache", "sized", "write_cache",
    )  # fmt: skip

    space = Space.GM

    def __init__(self) -> None:
        self.buffer: GmBuffer | None = None
        self.dtype: DType = None  # type: ignore[assignment]
        self.offset = 0  # bytes into the allocation
        self.length = 0  # bytes to the window's end
        self.sized = False
        self.read_cache = self.write_cache = CacheMode.CACHE_MODE_NORMAL
        self.key: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """What messages call the tensor: the kernel argument's name."""
        return self.buffer.name if self.buffer is not None else "an unbound GlobalTensor"

    def set_global_buffer(
        self, buffer: GlobalAddress | None = None, buffer_size: int | None = None
    ) -> None:
        """Bind the window to an address; `buffer_size` limits it, in elements."""
        if not isinstance(buffer, GlobalAddress):
            fault(
                "HOST",
                "not-an-address",
                f"set_global_buffer needs a GM address (a tensor argument of the kernel), got {type(buffer).__name__}",
            )
        self.buffer = buffer.buffer
        self.dtype = buffer.dtype
        self.offset = buffer.offset
        end = buffer.origin + buffer.length
        self.length = end - buffer.offset
        self.sized = buffer_size is not None
        if buffer_size is not None:
            size = whole("set_global_buffer: buffer_size", buffer_size, 0)
            self.length = size * self.dtype.size
        self._bind()

    def _require_buffer(self) -> GmBuffer:
        if self.buffer is None:
            fault("HOST", "unbound-tensor", "a GlobalTensor is used before set_global_buffer")
        return self.buffer

    def _bind(self) -> None:
        if self.buffer is not None:
            modes = int(self.read_cache) << 3 | int(self.write_cache)
            self.key = (self.buffer.index, self.dtype, modes)

    def _window(self, offset: int, length: int) -> GlobalTensor:
        view = GlobalTensor.__new__(GlobalTensor)
        view.buffer = self.buffer
        view.dtype = self.dtype
        view.offset = offset
        view.length = length
        view.sized = self.sized
        view.read_cache, view.write_cache = self.read_cache, self.write_cache
        view.key = self.key
        return view

    def __getitem__(self, index: Any) -> GlobalTensor:
        if type(index) is slice and index.stop is None and index.step is None:
            start = index.start
            if type(start) is int and start >= 0 and self.buffer is not None:
                skipped = start * self.dtype.size  # t[i:], the usual form
                return self._window(self.offset + skipped, self.length - skipped)
        self._require_buffer()
        size = self.dtype.size
        start, stop = _start_stop(index, self.length // size, self.name)
        length = self.length - start * size
        if stop is not None:
            if (stop - start) * size > length:
                fault(
                    "BOUNDS",
                    "view-bounds",
                    f"{self.name}[{start}:{stop}] ends {(stop - start) * size - length} bytes past the tensor, "
                    f"which has {self.length // size} elements",
                    tensor=self.name,
                )
            length = (stop - start) * size
        return self._window(self.offset + start * size, length)

    def __call__(self, index: int) -> GlobalTensor:
        """Return the view of one element."""
        start = whole(f"{self.name}(…): the index", index)
        return self[start : start + 1]

    def get_value(self, offset: int = 0) -> int | float:
        """Read element `offset` through the scalar unit's data cache; the scalar unit waits for it."""
        from isa.scalar import get_value  # noqa: PLC0415  instructions import tensors

        return get_value(self, offset)

    def set_value(self, offset: int, value: float) -> None:
        """Write element `offset` through the scalar unit's data cache."""
        from isa.scalar import set_value  # noqa: PLC0415  instructions import tensors

        set_value(self, offset, value)

    def get_size(self) -> int:
        """Return the elements given to `set_global_buffer`, 0 where none were given (as AscendC does)."""
        return self.length // self.dtype.size if self.sized else 0

    def get_phy_addr(self, offset: int = 0) -> GlobalAddress:
        """Return the address of element `offset`."""
        address = GlobalAddress(self._require_buffer(), self.dtype, self.offset, self.length)
        return address + offset

    def reinterpret_cast(self, dtype: DType) -> GlobalTensor:
        """Return the same bytes as elements of another type (an addition to pyasc)."""
        self._require_buffer()
        view = self._window(self.offset, self.length)
        view.dtype = element_type("reinterpret_cast", dtype)
        view._bind()
        return view

    def set_l2_cache_hint(
        self,
        mode: CacheMode = CacheMode.CACHE_MODE_NORMAL,
        rw_mode: CacheRwMode = CacheRwMode.RW,
    ) -> None:
        """Say how accesses through this window use L2, reads, writes or both; `CACHE_MODE_DISABLE` bypasses it."""
        if not is_whole(mode) or mode not in tuple(CacheMode):
            fault(
                "ILLEGAL_PARAM",
                "cache-mode",
                f"set_l2_cache_hint: mode must be a CacheMode such as CACHE_MODE_DISABLE, got {mode!r}",
            )
        if not is_whole(rw_mode) or rw_mode not in tuple(CacheRwMode):
            fault(
                "ILLEGAL_PARAM",
                "cache-mode",
                f"set_l2_cache_hint: rw_mode must be a CacheRwMode such as RW, got {rw_mode!r}",
            )
        if rw_mode != CacheRwMode.WRITE:
            self.read_cache = CacheMode(mode)
        if rw_mode != CacheRwMode.READ:
            self.write_cache = CacheMode(mode)
        self._bind()

    def set_shape_info(self, shape_info: Any) -> None:
        """Keep a ShapeInfo with the tensor; no instruction reads it."""
        self._shape_info = shape_info

    def get_shape_info(self) -> Any:
        """Return what `set_shape_info` kept."""
        return _kept_shape(self)

    def __repr__(self) -> str:
        if self.buffer is None:
            return "<GlobalTensor unbound>"
        return f"<GlobalTensor {self.name}+{self.offset} B, {self.length} B of {self.dtype}>"


class Owner:
    """Where a local tensor's bytes come from: a queue's block, a TBuf, or a static allocation."""

    __slots__ = ("label", "serial")
    _count = 0

    def __init__(self, label: str) -> None:
        Owner._count += 1
        self.serial = Owner._count
        self.label = label


class LocalTensor(NoValues):
    """A window on an on-chip memory: `addr` and `length` in bytes.

    `LocalTensor(dtype, pos, addr, tile_size)` makes one directly, `tile_size` in elements; queues and buffers
    make them too. The memory is the one of the core that uses the tensor.
    """

    __slots__ = (
        "_shape_info", "addr", "dtype", "key", "label", "length", "owner", "position", "space", "tag",
    )  # fmt: skip

    def __init__(
        self,
        dtype: DType,
        pos: TPosition = TPosition.VECIN,
        addr: int = 0,
        tile_size: int = 0,
        *,
        owner: Owner | None = None,
    ) -> None:
        if type(dtype) is not DType:
            dtype = element_type("LocalTensor", dtype)
        space = POSITION_SPACE.get(pos) if type(pos) is TPosition else None
        if space is None:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"LocalTensor: pos must be a TPosition such as VECCALC, got {pos!r}",
            )
        if type(addr) is not int or type(tile_size) is not int:
            addr = whole("LocalTensor: addr", addr)
            tile_size = whole("LocalTensor: tile_size", tile_size)
        self.dtype = dtype
        self.position = pos
        self.space = space
        self.addr = addr
        self.length = tile_size * dtype.size
        self.owner = owner
        self.label: str | None = None
        self.tag = 0
        if self.addr < 0 or self.length < 0:
            fault(
                "BOUNDS",
                "negative-address",
                f"LocalTensor at byte {self.addr} with {self.length} bytes: both must be at least 0",
            )
        self._bind()

    def _bind(self) -> None:
        self.key = (
            self.owner.serial if self.owner is not None else 0,
            self.addr,
            self.length,
            self.dtype,
            int(self.position),  # an Enum hashes in Python, an int does not
        )

    def _window(self, addr: int, length: int, dtype: DType) -> LocalTensor:
        view = LocalTensor.__new__(LocalTensor)
        view.dtype = dtype
        view.position = self.position
        view.space = self.space
        view.addr = addr
        view.length = length
        view.owner = self.owner
        view.label = self.label
        view.tag = self.tag
        view._bind()
        return view

    @property
    def name(self) -> str:
        """What messages call the tensor."""
        if self.label is not None:
            return self.label
        if self.owner is not None:
            return self.owner.label
        return f"{self.space.name}[{self.addr}:{self.addr + self.length}]"

    def __getitem__(self, index: Any) -> LocalTensor:
        size = self.dtype.size
        if type(index) is int and 0 <= index * size <= self.length:  # the usual forms: t[i], t[i:]
            return self._window(self.addr + index * size, self.length - index * size, self.dtype)
        if type(index) is slice and index.stop is None and index.step is None:
            start = index.start
            if type(start) is int and 0 <= start * size <= self.length:
                return self._window(
                    self.addr + start * size, self.length - start * size, self.dtype
                )
        start, stop = _start_stop(index, self.length // size, self.name)
        length = self.length - start * size
        if stop is not None and (stop - start) * size <= length:
            length = (stop - start) * size
        elif stop is not None or length < 0:
            fault(
                "BOUNDS",
                "view-bounds",
                f"{self.name}[{start}:{'' if stop is None else stop}] leaves the tensor, which has "
                f"{self.length // size} elements",
                tensor=self.name,
            )
        return self._window(self.addr + start * size, length, self.dtype)

    def __call__(self, index: int) -> LocalTensor:
        """Return the view of one element."""
        start = whole(f"{self.name}(…): the index", index)
        return self[start : start + 1]

    def get_value(self, index: int = 0) -> int | float:
        """Read element `index`; the scalar unit waits for it. UB positions only."""
        from isa.scalar import get_value  # noqa: PLC0415  instructions import tensors

        return get_value(self, index)

    def set_value(self, index: int, value: float) -> None:
        """Write element `index` through the scalar unit. UB positions only."""
        from isa.scalar import set_value  # noqa: PLC0415  instructions import tensors

        set_value(self, index, value)

    def get_size(self) -> int:
        """Return the number of elements."""
        return self.length // self.dtype.size

    def get_length(self) -> int:
        """Return the number of bytes."""
        return self.length

    def set_size(self, size: int = 0) -> None:
        """Set the number of elements."""
        self.length = whole("set_size: size", size, 0) * self.dtype.size
        self._bind()

    def set_buffer_len(self, data_len: int) -> None:
        """Set the number of bytes."""
        self.length = whole("set_buffer_len: data_len", data_len, 0)
        self._bind()

    def get_position(self) -> TPosition:
        """Return the logical position."""
        return self.position

    def get_phy_addr(self, offset: int = 0) -> int:
        """Return the byte address of element `offset`."""
        return self.addr + whole("get_phy_addr: offset", offset) * self.dtype.size

    def get_user_tag(self) -> int:
        """Return the tag that `set_user_tag` stored."""
        return self.tag

    def set_user_tag(self, tag: int = 0) -> None:
        """Store a number with the tensor."""
        self.tag = whole("set_user_tag: tag", tag)

    def reinterpret_cast(self, dtype: DType) -> LocalTensor:
        """Return the same bytes as elements of another type."""
        return self._window(self.addr, self.length, element_type("reinterpret_cast", dtype))

    def set_addr_with_offset(self, src: LocalTensor, offset: int) -> None:
        """Move this tensor to element `offset` of `src`."""
        if not isinstance(src, LocalTensor):
            fault(
                "ILLEGAL_PARAM",
                "wrong-operand",
                f"set_addr_with_offset: src must be a LocalTensor, got {type(src).__name__}",
            )
        self.addr = src.addr + whole("set_addr_with_offset: offset", offset, 0) * src.dtype.size
        self.space, self.position, self.owner = src.space, src.position, src.owner
        self._bind()

    def set_shape_info(self, shape_info: Any) -> None:
        """Keep a ShapeInfo with the tensor; no instruction reads it."""
        self._shape_info = shape_info

    def get_shape_info(self) -> Any:
        """Return what `set_shape_info` kept."""
        return _kept_shape(self)

    def print(self, data_len: int | None = None) -> None:
        """Print the first `data_len` elements, 32 bytes a line, once all pipes are done."""
        from isa.show import print_local  # noqa: PLC0415  it looks at tensors

        print_local(self, data_len)

    def to_file(self, file_name: str) -> int:
        """Write the tensor's bytes to a file, once all pipes are done; return 0."""
        from isa.show import to_file  # noqa: PLC0415  it looks at tensors

        return to_file(self, file_name)

    def _become(self, other: LocalTensor) -> None:
        """Be another tensor from here on: what `alloc_tensor(tensor)` and `deque(tensor)` do."""
        self.dtype, self.position, self.space = other.dtype, other.position, other.space
        self.addr, self.length, self.owner = other.addr, other.length, other.owner
        self.label, self.tag = other.label, other.tag
        self._bind()

    def __repr__(self) -> str:
        return f"<LocalTensor {self.name} {self.space.name}[{self.addr}:{self.addr + self.length}] {self.dtype}>"


def _kept_shape(tensor: GlobalTensor | LocalTensor) -> Any:
    shape_info = getattr(tensor, "_shape_info", None)  # views do not have it
    if shape_info is None:
        fault(
            "STATE",
            "no-shape-info",
            f"get_shape_info: {tensor.name} has no shape; set_shape_info gives it one",
            tensor.name,
        )
    return shape_info
