"""Results that nobody reads: an instruction's bytes on chip, all of them overwritten before anything has read one.

Work done for nothing, and mostly a mistake: two tiles loaded into one buffer, a product that starts anew where it was
to go on. It is looked for in program order, among the first instructions of the first block of each kind of core, and
told of a line only where it is so each time, and where what overwrites it stands beside it and is read itself. What is
written without being read from anywhere does not count (a fill, of whose bytes a later copy may take all or some), nor
does a result that was overwritten in part, nor an instruction that leaves a result in a register too.
"""

from __future__ import annotations

import linecache
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from ascend_sim.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascend_sim.program import Program
    from ascend_sim.trace import CoreLog, Item, Site
    from isa.access import Access

MOST = 500
"""Items that are looked at."""
_MANY = 64
"""Pieces from which on an access is taken for all between its ends if it reads, for none of it if it writes."""


_REGISTERS = ("reduce", "mrg_sort", "gather_mask", "compare")
"""Parts of the names of instructions that leave something in a special register."""


class _Result:
    """What an instruction wrote: how many of its bytes stand, whether any was read, what its operands are.

    `counts`: for each operand of an Mmad how often its memory had been written.
    """

    __slots__ = ("access", "counts", "item", "left", "read")

    def __init__(self, item: Item, access: Access, left: int, *, read: bool) -> None:
        self.item = item
        self.access = access
        self.left = left
        self.read = read
        self.counts: tuple[int, ...] = ()


class _Bytes:
    """Whose bytes stand where in one memory: disjoint pieces in order."""

    def __init__(self) -> None:
        self.count = 0  # of writes
        self._starts: list[int] = []
        self._pieces: list[tuple[int, _Result]] = []  # the end, whose it is

    def _within(self, low: int, high: int) -> slice:
        first = max(bisect_right(self._starts, low) - 1, 0)
        if first < len(self._pieces) and self._pieces[first][0] <= low:
            first += 1
        return slice(first, bisect_left(self._starts, high))

    def read(self, low: int, high: int) -> None:
        """Take a read of some bytes."""
        for _, result in self._pieces[self._within(low, high)]:
            result.read = True

    def write(self, low: int, high: int, result: _Result) -> Iterator[_Result]:
        """Take a write; yield the results of which nothing is left."""
        self.count += 1
        where = self._within(low, high)
        gone = list(zip(self._starts[where], self._pieces[where], strict=True))
        starts, pieces = [], []
        for start, (end, old) in gone:
            old.left -= min(end, high) - max(start, low)
            if start < low:
                starts.append(start)
                pieces.append((low, old))
        starts.append(low)
        pieces.append((high, result))
        for start, (end, old) in gone:
            if end > high:
                starts.append(max(start, high))
                pieces.append((end, old))
        self._starts[where], self._pieces[where] = starts, pieces
        yield from {id(old): old for _, (_, old) in gone if not old.left}.values()


def look_over(program: Program, log: CoreLog) -> None:
    """Report what the first block on a kind of core overwrites unread."""
    session = program.session
    if program.core_kind in session.looked_over or log.spilled:
        return
    session.looked_over.add(program.core_kind)
    memories: dict[int, _Bytes] = {}
    lost: dict[int, list[tuple[_Result, _Result]]] = {}
    counts: dict[int, int] = {}
    for item in log.items[log.firsts[-1] : log.firsts[-1] + MOST]:
        if item.kind is Kind.INSTRUCTION and item.call is not None:
            counts[item.site] = counts.get(item.site, 0) + 1
            for result, killer in _take(item, memories):
                lost.setdefault(result.item.site, []).append((result, killer))
    racing = {one.line for one in session.findings.values() if one.kind == "RACE"}
    for site, found in lost.items():
        lines = {session.sites[one.item.site].line for pair in found for one in pair}
        if racing.isdisjoint(lines) and _is_told(program, found, counts[site]):
            _report(program, found)


def _is_told(program: Program, found: list[tuple[_Result, _Result]], count: int) -> bool:
    """Return whether results of a line are certainly useless, and what overwrites them is not."""
    item = found[0][0].item
    unit_flag: Any = getattr(item.call, "unit_flag", 0)
    if unit_flag or any(part in item.name for part in _REGISTERS):
        return False  # unit flags order what the program does not
    if not all(_is_own(program, one.item) for pair in found for one in pair):
        return False
    if item.name == "mmad" and all(killer.item.site == item.site for _, killer in found):
        anew = all(
            a != b for old, new in found for a, b in zip(old.counts, new.counts, strict=True)
        )
        return anew and len(found) == count - 1 and bool(found[-1][1].read)
    sites = program.session.sites
    return len(found) == count and all(
        killer.read and _side_by_side(sites[item.site], sites[killer.item.site])
        for _, killer in found
    )


def _is_own(program: Program, item: Item) -> bool:
    """Return whether the kernel itself calls an instruction: what a library call issues is not its matter."""
    frames = program.session.sites[item.site].frames
    return any(item.name in linecache.getline(file, line) for file, line, _ in frames)


def _side_by_side(one: Site, other: Site) -> bool:
    """Return whether two lines of one function are as deep: neither runs under a condition of its own."""
    if not one.frames or not other.frames or one.frames[1:] != other.frames[1:]:
        return False
    (file, line, function), (other_file, other_line, other_function) = (
        one.frames[0],
        other.frames[0],
    )
    if (file, function) != (other_file, other_function) or line == other_line:
        return False
    texts = linecache.getline(file, line), linecache.getline(file, other_line)
    depths = [len(text) - len(text.lstrip()) for text in texts]
    return all(texts) and depths[0] == depths[1]


def _take(item: Item, memories: dict[int, _Bytes]) -> Iterator[tuple[_Result, _Result]]:
    """Follow an instruction; yield the results that it is the end of, with its own."""
    reads, writes = _accesses(item)
    counts = []
    for access in reads:
        if access.buffer is None and access.low >= 0:
            memory = memories.setdefault(access.place, _Bytes())
            counts.append(memory.count)
            for low, high in _pieces(access) or [(access.low, access.high)]:
                memory.read(low, high)
    for access in writes:
        if access.buffer is not None or access.low < 0:
            continue
        pieces = _pieces(access)
        size = sum(high - low for low, high in pieces)
        result = _Result(item, access, size, read=not reads)
        result.counts = tuple(counts)
        for low, high in pieces:
            for old in memories.setdefault(access.place, _Bytes()).write(low, high, result):
                if not old.read and old is not result:
                    yield old, result


def _accesses(item: Item) -> tuple[Sequence[Access], Sequence[Access]]:
    """Return what an instruction reads and writes; the scalar unit's stores count as fills."""
    call: Any = item.call
    access = getattr(call, "access", None)
    if access is not None:  # of the scalar unit
        return ((), (access,)) if item.name == "set_value" else ((access,), ())
    return getattr(call, "reads", None) or (), getattr(call, "writes", None) or ()


def _pieces(access: Access) -> list[tuple[int, int]]:
    """Return the bytes of an access as ranges; none where they are too many."""
    if access.contiguous:
        return [(access.low, access.high)]
    ranges = access.ranges()
    return [(int(low), int(high)) for low, high in ranges] if len(ranges) <= _MANY else []


def _report(program: Program, found: list[tuple[_Result, _Result]]) -> None:
    session = program.session
    result, killer = found[0]
    item, access = result.item, result.access
    fixed = access.owner is None
    called = program.statics.called(access.name, access.dtype) if fixed else access.name
    if killer.item.site == item.site:
        by = "the next product of this line"
        cure = "To go on adding, give cmatrix_init_val False from the second step on"
    else:
        by = f"{killer.item.name} at {session.where_text(killer.item.site)}"
        cure = "Give one of them another place, or drop what is not needed"
    session.report(
        "INFO",
        "overwritten-unread",
        f"{item.name} writes {called}, {access.space.name} bytes {access.low} to {access.high}, and before "
        f"anything has read one of them {by} overwrites them all, {_often(len(found))}. {cure}",
        item.site,
        program.core.name,
        item.pipe.name,
        access.name,
        (access.low, access.high),
        struck=True,
    )


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
