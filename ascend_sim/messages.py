"""The wording of findings that involve more than one place: races, and the data cache."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_sim.naming import place_of
from ascend_sim.trace import CoreLog, Item, Kind, Log, Site
from isa.types import EVENT_SOURCE, EVENT_TARGET, Pipe, Space

_LOOK_BACK = 1000
"""Items around a race that are looked at for what nearly orders it."""

if TYPE_CHECKING:
    from ascend_sim.gm_order import Conflict
    from ascend_sim.naming import Variables
    from isa.access import Access


def place(site: Site) -> str:
    """Return "kernel.py:41 in load (from line 12)", with paths as short as they stay readable."""
    if not site.frames:
        return "the kernel"
    (file, line, function), *callers = site.frames
    text = f"{short(file)}:{line} in {function}"
    if not callers:
        return text
    caller, number, _ = callers[0]
    return f"{text} (from {'line ' if caller == file else f'{short(caller)}:'}{number})"


def short(file: str) -> str:
    """Return a path relative to the current directory where it is below it, else the bare name."""
    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return path.name


def where(access: Access, names: Variables | None = None) -> str:
    """Return "UB[0:24576] (in_queue[0])" or "GM x[0:4096]"; `names` has those of tensors at fixed addresses."""
    if access.space is Space.GM:
        return f"GM {access.name}[{access.low}:{access.high}]"
    if access.low < 0:  # a special register
        return access.name
    place = f"{access.space.name}[{access.low}:{access.high}]"
    named = not access.name.startswith(
        f"{access.space.name}["
    )  # a static tensor is called by its place
    name = access.name if named else ""
    if not named and names is not None:
        name = names.of(access)
    return f"{place} ({name})" if name else place


_VERBS = {
    "RAW": ("reads", "may still be writing it"),
    "WAR": ("overwrites", "may still be reading it"),
    "WAW": ("overwrites", "may still be writing it"),
}


def race(
    what: str,
    earlier: Item,
    later: Item,
    first: Access,
    second: Access,
    core: CoreLog,
    sites: list[Site],
    names: Variables | None = None,
) -> str:
    """Say which instruction may overtake which, on which bytes, what would order them, and what nearly does."""
    verb, still = _VERBS[what]
    lines = [
        f"{later.name} {verb} {where(second, names)} while {earlier.name} {still} [{what}]",
        f"  {later.name:<12} {place(sites[later.site])}  {core.name}.{later.pipe.name}",
        f"  {earlier.name:<12} {place(sites[earlier.site])}  {core.name}.{earlier.pipe.name}  {where(first, names)}",
        f"  {_cure(earlier.pipe, later.pipe, *_lines(sites[earlier.site], sites[later.site]))}",
    ]
    if earlier.pipe is Pipe.S and first.space is Space.GM and earlier.name == "set_value":
        lines.append(
            "  what set_value stored is in the scalar unit's data cache, where no copy looks: it needs "
            "data_cache_clean_and_invalid before the flag as well"
        )
    shared = shared_bytes(first, second)
    if shared is not None:
        lines.append(
            f"  {where(first, names)} and {where(second, names)} {APART} {shared[0]} to {shared[1]}: if each is a "
            f"tensor of its own, move one"
        )
    near = _near_miss(earlier, later, core, sites)
    return "\n".join([*lines, f"  {near}"] if near else lines)


APART = "share no more than bytes"
"""What is said of two tensors of which neither lies in the other."""


def shared_bytes(first: Access, second: Access) -> tuple[int, int] | None:
    """Return the bytes that two tensors at fixed addresses share, if neither lies in the other."""
    space, low, high = place_of(first.name)
    other, other_low, other_high = place_of(second.name)
    if space is None or space is not other or first.owner is not None or second.owner is not None:
        return None
    (low, high), (other_low, other_high) = sorted([(low, high), (other_low, other_high)])
    return (other_low, high) if low < other_low < high < other_high else None


def _near_miss(earlier: Item, later: Item, core: CoreLog, sites: list[Site]) -> str | None:
    """Say what stands between two instructions and looks as if it ordered them, but does not."""
    low = bisect_left(core.items, min(earlier.index, later.index), key=_index)
    between = core.items[low : bisect_left(core.items, later.index, low, key=_index)]
    for item in reversed(between):
        if item.kind is Kind.WAIT_FLAG and item.event is not None and not item.inserted:
            source, target = EVENT_SOURCE[item.event], EVENT_TARGET[item.event]
            if target is not later.pipe:
                continue
            told = f"{item.event.name} id {item.event_id} at {place(sites[item.site])}"
            if source is not earlier.pipe:
                return f"{told} stands between them, but it orders {source.name}, not {earlier.pipe.name}"
            setter = _set_of(item, core, low)
            if setter is not None and setter.index < earlier.index:
                return (
                    f"{told} stands between them, but its set_flag at {place(sites[setter.site])} comes before "
                    f"{earlier.name}"
                )
    for item in reversed(between):
        if (
            item.kind is Kind.BARRIER
            and earlier.pipe is not later.pipe
            and item.pipe in (earlier.pipe, later.pipe)
            and not item.inserted
        ):
            return f"the barrier at {place(sites[item.site])} orders {item.pipe.name} only"
    return None


def _set_of(wait: Item, core: CoreLog, low: int) -> Item | None:
    """Return the set that a wait takes: of the flag's sets as many from the end as there are waits open by then."""
    taken = 1
    for item in reversed(core.items[max(low - _LOOK_BACK, 0) : low + _LOOK_BACK]):
        if item.index >= wait.index or item.flag != wait.flag or item.event is None:
            continue
        if item.kind is Kind.WAIT_FLAG:
            taken += 1
        elif item.kind is Kind.SET_FLAG:
            taken -= 1
            if taken == 0:
                return item
    return None


def _index(item: Item) -> int:
    return item.index


def _lines(first: Site, second: Site) -> tuple[int, int]:
    """Return the lines of two call sites in the function in which their ways part: a helper may be called from both."""
    for one, other in zip(reversed(first.frames), reversed(second.frames), strict=False):
        if one[::2] != other[::2]:  # file and function
            break
        if one != other:
            return one[1], other[1]
    return first.line, second.line


def _cure(earlier: Pipe, later: Pipe, first_line: int, second_line: int) -> str:
    if earlier is later:
        between = (
            f"between line {first_line} and line {second_line}"
            if first_line != second_line
            else f"behind line {first_line}, before it runs again"
        )
        return f"instructions of pipe {later.name} overlap: put pipe_barrier(PIPE_{later.name}) {between}"
    event = f"{earlier.name}_{later.name}"
    other = "let a queue's enque and deque do it"
    if Pipe.S in (earlier, later):
        other = "use pipe_barrier(PIPE_ALL), which stops every pipe"
    return (
        f"nothing orders {earlier.name} before {later.name} here: set_flag({event}, id) after line {first_line}, "
        f"wait_flag({event}, id) before line {second_line}; or {other}"
    )


def _near_miss_of_cores(earlier: Item, later: Item, log: Log) -> str | None:
    """Say which flag between two cores looks as if it ordered two accesses, but does not."""
    items = log.cores[later.core].items
    past = bisect_left(items, later.index, key=_index)
    for item in reversed(items[max(past - _LOOK_BACK, 0) : past]):
        setter = item.partner if item.kind is Kind.WAIT_FLAG and item.event is None else None
        if setter is None or setter.core != earlier.core or setter.kind is not Kind.SET_FLAG:
            continue
        if setter.event is not None or setter.mode < 0 or setter.pipe is Pipe.S:
            continue
        told = (
            f"cross-core flag {item.event_id} at {place(log.sites[item.site])} stands between them, but its set at "
            f"{place(log.sites[setter.site])}"
        )
        if setter.index < earlier.index:
            return f"{told} comes before {earlier.name}"
        if setter.pipe is not earlier.pipe:
            return (
                f"{told} is on PIPE_{setter.pipe.name}, which does not wait for {earlier.pipe.name}: put it on "
                f"PIPE_{earlier.pipe.name}"
            )
        return None
    return None


def race_of_cores(conflict: Conflict, names: tuple[str, str], log: Log, part: str = "") -> str:
    """Say which blocks, or cores of one block, touch the same bytes, and that nothing orders them."""
    what, first, second = conflict
    verb = {"WAW": "write", "RAW": "write and read", "WAR": "read and write"}[what]
    low, high = conflict.bytes()
    buffer = second.access.buffer
    assert buffer is not None
    same_kind = names[0].startswith("block ") and names[1].startswith("block ")
    both = (
        f"blocks {names[0][6:]} and {names[1][6:]}" if same_kind else f"{names[0]} and {names[1]}"
    )
    lines = [
        f"{both} {verb} the same bytes of {buffer.name}, {low} to {high}{part}, and nothing orders them [{what}]"
    ]
    for use, name in ((first, names[0]), (second, names[1])):
        item = use.item
        lines.append(f"  {item.name:<12} {place(log.sites[item.site])}  {name}, {item.pipe.name}")
    atomic = ""
    if same_kind and all(use.item.pipe is not Pipe.S for use in (first, second)):
        atomic = ", or add to it by atomic stores (in no fixed order)"
    lines.append(
        f"  let each own its part of {buffer.name}{atomic}, or put a flag between cores, or sync_all, between the two"
    )
    near = _near_miss_of_cores(first.item, second.item, log)
    if near is not None:
        lines.append(f"  {near}")
    if any(use.item.pipe is Pipe.S and not use.write for use in (first, second)):
        lines.append(
            "  a word that is polled by hand orders nothing for this check: ib_set and ib_wait do it, and are known"
        )
    return "\n".join(lines)


def coherence(conflict: Conflict, names: tuple[str, str], sites: list[Site]) -> str:
    """Say what the data cache keeps one access from seeing of the other, and what would clean it."""
    what, first, second = conflict
    low, high = conflict.bytes()
    buffer = second.access.buffer
    assert buffer is not None
    where = f"{buffer.name}[{low}:{high}]"
    clean = "data_cache_clean_and_invalid(CacheLine.SINGLE_CACHE_LINE, tensor)"
    if what == "stale":
        told = (
            f"{second.item.name} may find an old {where} in the data cache: its line came in before "
            f"{first.item.name} wrote it"
        )
        cure = f"put {clean} before {second.item.name}, after the wait that orders the two"
    elif what == "kept":
        told = (
            f"{second.item.name} does not see what {first.item.name} stored in {where}: it is still in the "
            f"data cache"
        )
        cure = f"put {clean} after {first.item.name}, before the flag that orders the two"
    else:
        told = (
            f"{first.item.name} and {second.item.name} store into one line of the data cache, {where}: lines go back "
            f"whole, so what one of them stores may be overwritten by what the other one's cache found there"
        )
        cure = "give each core whole lines of its own, or store through UB with data_copy_pad"
    lines = [told]
    for use, name in ((first, names[0]), (second, names[1])):
        lines.append(
            f"  {use.item.name:<12} {place(sites[use.item.site])}  {name}, {use.item.pipe.name}"
        )
    lines.append(f"  {cure}")
    return "\n".join(lines)
