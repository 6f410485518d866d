"""The scalar unit's data cache on GM: lines that nobody else sees into.

A scalar access brings its line in; from then on reads get what the line holds, whatever others have written to GM
meanwhile, and writes stay in the line. A dirty line goes back whole: when it is cleaned, when another line needs its
place, and when the kernel ends; so it also puts back what it once read of the bytes around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.access import Access
    from isa.tensor import GmBuffer


class _Line:
    """One line: its content from the first access on that needs it."""

    __slots__ = ("again", "buffer", "data", "dirty", "low")

    def __init__(self, buffer: GmBuffer, low: int) -> None:
        self.buffer = buffer
        self.low = low
        self.data: NDArray[np.uint8] | None = None
        self.dirty = False
        self.again = False


class DataCache:
    """The lines of one core, least recently used first."""

    def __init__(self, size: int, line: int) -> None:
        self.line = line
        self.lines = size // line
        self._held: dict[tuple[int, int], _Line] = {}

    def hit(self, buffer: GmBuffer, offset: int) -> bool:
        """Use a line; return whether it was there."""
        number = offset // self.line
        key = (buffer.index, number)
        line = self._held.pop(key, None)
        present = line is not None
        if line is not None:
            line.again = True
        else:
            if len(self._held) >= self.lines:
                self._write_back(self._held.pop(next(iter(self._held))))
            line = _Line(buffer, number * self.line)
        self._held[key] = line
        return present

    def fill(self, buffer: GmBuffer, offset: int) -> _Line:
        """Return a line with its content, brought in now if it was not there."""
        line = self._held.get((buffer.index, offset // self.line))
        if line is None:  # another access has taken its place already
            line = _Line(buffer, offset // self.line * self.line)
        if line.data is None:
            line.data = np.zeros(self.line, np.uint8)
            part = buffer.data[line.low : line.low + self.line]
            line.data[: len(part)] = part
        return line

    def read(self, access: Access) -> Any:
        """Return an element as the scalar unit sees it."""
        assert access.buffer is not None
        return self._view(access, self.fill(access.buffer, access.low))[0].item()

    def write(self, access: Access, value: Any) -> None:
        """Store an element in its line."""
        assert access.buffer is not None
        line = self.fill(access.buffer, access.low)
        self._view(access, line)[0] = value
        line.dirty = True
        if self._held.get((access.buffer.index, access.low // self.line)) is not line:
            self._write_back(line)

    def _view(self, access: Access, line: _Line) -> NDArray[Any]:
        """Return one element of a line; of one that lies across two lines, what GM itself holds."""
        if access.high > line.low + self.line:
            return access.view(line.buffer.data)
        assert line.data is not None
        return np.ndarray((1,), access.dtype.numpy, line.data, access.low - line.low)

    def is_dirty(self, buffer: GmBuffer | None, offset: int) -> bool:
        """Return whether cleaning a line (all lines where there is no buffer) has something to write."""
        if buffer is None:
            return any(line.dirty for line in self._held.values())
        line = self._held.get((buffer.index, offset // self.line))
        return line is not None and line.dirty

    def reused(self, index: int, offset: int) -> bool:
        """Return whether a line of an allocation has been used again since it came in."""
        line = self._held.get((index, offset // self.line))
        return line is not None and line.again

    def clean(self, buffer: GmBuffer | None, offset: int = 0) -> None:
        """Write a line back (all lines where there is no buffer) and drop it."""
        if buffer is None:
            for line in self._held.values():
                self._write_back(line)
            self._held.clear()
            return
        held = self._held.pop((buffer.index, offset // self.line), None)
        if held is not None:
            self._write_back(held)

    def flush(self) -> None:
        """Write all lines back at the end of a kernel; they stay."""
        for line in self._held.values():
            self._write_back(line)

    def _write_back(self, line: _Line) -> None:
        if line.dirty:
            assert line.data is not None
            part = line.buffer.data[line.low : line.low + self.line]
            part[...] = line.data[: len(part)]
            line.dirty = False
