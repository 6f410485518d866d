"""What reports keep of each core of a long run, in a nameless temporary file: a few cores are in memory at a time."""

from __future__ import annotations

import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ascend_sim.errors import ConfigError

Arrays = list[NDArray[np.generic]]
Thing = TypeVar("Thing")

ROOM = 48 << 20
"""How many bytes of arrays stay in memory."""


class Temporary:
    """A nameless temporary file (in `TMPDIR`) that is gone with its owner; pieces of bytes, one behind the other."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._stream: BinaryIO = tempfile.TemporaryFile(prefix="ascend-sim-")  # noqa: SIM115  as long as its owner
        weakref.finalize(self, self._stream.close)
        self._end = 0

    def append(self, content: bytes | memoryview) -> int:
        """Write a piece and return where it begins. Raises `ConfigError` where the disk is full."""
        offset = self._end
        try:
            self._stream.seek(offset)
            self._stream.write(content)
        except OSError as error:
            raise ConfigError(
                f"{self._what} of a long run goes to a temporary file in {tempfile.gettempdir()}, which cannot be "
                f"written: {error.strerror}. Set TMPDIR to a directory with more room"
            ) from error
        self._end += len(content)
        return offset

    def read(self, offset: int, size: int) -> bytes:
        """Return a piece."""
        self._stream.seek(offset)
        return self._stream.read(size)


class _Place(NamedTuple):
    offset: int
    size: int
    length: int
    dtype: np.dtype[np.generic]


class Shelf(Generic[Thing]):
    """Things in the order in which they were put, each made of arrays; `make(number, arrays)` makes one again.

    Arrays that were read back cannot be written to.
    """

    def __init__(self, make: Callable[[int, Arrays], Thing], room: int | None = None) -> None:
        self._make = make
        self._file = Temporary("what reports know")
        self._places: list[list[_Place]] = []
        self._near: OrderedDict[int, tuple[Thing, int]] = OrderedDict()
        self._room = ROOM if room is None else room
        self._taken = 0

    def __len__(self) -> int:
        return len(self._places)

    def put(self, arrays: Arrays) -> None:
        """Put the arrays of the next thing on the shelf."""
        places = []
        for array in arrays:
            content = array.tobytes()
            offset = self._file.append(content)
            places.append(_Place(offset, len(content), len(array), array.dtype))
        self._places.append(places)

    def get(self, number: int) -> Thing:
        """Return a thing; those of late are still there."""
        near = self._near.get(number)
        if near is not None:
            self._near.move_to_end(number)
            return near[0]
        places = self._places[number]
        thing = self._make(number, [self._array(place) for place in places])
        size = sum(place.size for place in places)
        self._near[number] = thing, size
        self._taken += size
        while self._taken > self._room and len(self._near) > 1:
            _, (_, size) = self._near.popitem(last=False)
            self._taken -= size
        return thing

    def _array(self, place: _Place) -> NDArray[np.generic]:
        return np.frombuffer(self._file.read(place.offset, place.size), place.dtype, place.length)
