"""The wording of findings that involve more than one place: races and deadlocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ascend_sim.errors import Finding
from ascend_sim.mailbox import MAIL_KEY
from ascend_sim.soft_flags import SOFT
from ascend_sim.trace import Item, Kind, Site
from ascend_sim.unit_flags import FINISH, is_flagged
from isa.types import Pipe, Space

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.gm_order import Conflict
    from isa.access import Access


def place(site: Site) -> str:
    """Return "kernel.py:41 in compute", with the path as short as it stays readable."""
    if not site.frames:
        return "the kernel"
    file, line, function = site.frames[0]
    return f"{short(file)}:{line} in {function}"


def short(file: str) -> str:
    """Return a path relative to the current directory where it is below it, else the bare name."""
    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return path.name


def where(access: Access) -> str:
    """Return "UB[0:24576] (in_queue[0])" or "GM x[0:4096]"."""
    if access.space is Space.GM:
        return f"GM {access.name}[{access.low}:{access.high}]"
    if access.low < 0:  # a special register
        return access.name
    place = f"{access.space.name}[{access.low}:{access.high}]"
    named = not access.name.startswith(
        f"{access.space.name}["
    )  # a static tensor is called by its place
    return f"{place} ({access.name})" if named else place


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
    core: str,
    sites: list[Site],
) -> str:
    """Say which instruction may overtake which, on which bytes, and what would order them."""
    verb, still = _VERBS[what]
    lines = [
        f"{later.name} {verb} {where(second)} while {earlier.name} {still} [{what}]",
        f"  {later.name:<12} {place(sites[later.site])}  {core}.{later.pipe.name}",
        f"  {earlier.name:<12} {place(sites[earlier.site])}  {core}.{earlier.pipe.name}  {where(first)}",
        f"  {_cure(earlier.pipe, later.pipe, sites[earlier.site].line, sites[later.site].line)}",
    ]
    return "\n".join(lines)


def _cure(earlier: Pipe, later: Pipe, first_line: int, second_line: int) -> str:
    if earlier is later:
        return (
            f"instructions of pipe {later.name} overlap: put pipe_barrier(PIPE_{later.name}) between line {first_line} "
            f"and line {second_line}"
        )
    event = f"{earlier.name}_{later.name}"
    return (
        f"nothing orders {earlier.name} before {later.name} here: set_flag({event}, id) after line {first_line}, "
        f"wait_flag({event}, id) before line {second_line}; or let a queue's enque and deque do it"
    )


def race_of_cores(conflict: Conflict, names: tuple[str, str], sites: list[Site]) -> str:
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
        f"{both} {verb} the same bytes of {buffer.name}, {low} to {high}, and nothing orders them [{what}]"
    ]
    for use, name in ((first, names[0]), (second, names[1])):
        item = use.item
        lines.append(f"  {item.name:<12} {place(sites[item.site])}  {name}, {item.pipe.name}")
    lines.append(
        f"  let each own its part of {buffer.name}, or put a flag between cores, or sync_all, between the two"
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
        cure = f"give each core lines of {high - low} bytes of its own, or store through UB with data_copy_pad"
    lines = [told]
    for use, name in ((first, names[0]), (second, names[1])):
        lines.append(
            f"  {use.item.name:<12} {place(sites[use.item.site])}  {name}, {use.item.pipe.name}"
        )
    lines.append(f"  {cure}")
    return "\n".join(lines)


def deadlock(cores: list[Core], sites: list[Site], now: int) -> tuple[str, Finding]:
    """Say who waits for what, and how many sets each wait got."""
    lines = [f"deadlock at cycle {now}: nothing can move any more"]
    first: tuple[Core, Item] | None = None
    for core in cores:
        if core.program is None:
            continue
        for item, text in _blocked(core, sites):
            lines.append(f"  {core.name}.{item.pipe.name:<5} {text}")
            if first is None or (first[0] is core and item.index < first[1].index):
                first = (core, item)
    finding = Finding("DEADLOCK", "deadlock", "\n".join(lines), struck=True)
    if first is not None:
        core, item = first
        site = sites[item.site]
        finding.file, finding.line = site.file, site.line
        finding.core, finding.pipe = core.name, item.pipe.name
    return finding.message, finding


def _blocked(core: Core, sites: list[Site]) -> list[tuple[Item, str]]:
    found = [
        (pipe.blocked, _wait_text(core, pipe.blocked, sites))
        for pipe in core.pipes.values()
        if pipe.blocked is not None
    ]
    if core.waiting_flag is not None:
        found.append((core.waiting_flag, _wait_text(core, core.waiting_flag, sites)))
    elif core.items:
        item = core.items[0]
        if core.waiting_for is not None:
            full = core.waiting_for.pipe.name
            text = (
                f"cannot issue {item.name} ({place(sites[item.site])}): the queue of {full} is full"
            )
        elif item.name == "end":
            text = "has reached the kernel's end and waits for the pipes above"
        else:
            text = f"waits in {item.name} ({place(sites[item.site])}) for the pipes above"
        found.append((item, text))
    return found


def _silent(core: Core) -> str:
    """Say what the vector cores of a cube core are doing instead of sending a message."""
    texts = []
    for other in core.cross.vector_cores(core):
        done = other.program is None
        texts.append(f"{other.name} {'has ended without one' if done else 'has not sent one'}")
    return "; ".join(texts) + (
        ". Every vector core of a block calls register_matmul where its cube core does"
    )


def _wait_text(core: Core, item: Item, sites: list[Site]) -> str:
    if item.flag == MAIL_KEY:
        return f"waits at {place(sites[item.site])} for a message: {_silent(core)}"
    if item.kind is Kind.WAIT_FLAG and item.mode == SOFT:
        missing = core.cross.soft.missing(item.flag)
        return f"{item.name} waits at {place(sites[item.site])} for {missing}"
    if item.kind is Kind.WAIT_FLAG and item.event is None:
        return (
            f"waits at {place(sites[item.site])} for cross-core flag {item.event_id}: "
            f"{core.cross.missing(core, item.event_id)}"
        )
    if item.kind is Kind.INSTRUCTION and core.unit_flags is not None and is_flagged(item):
        return _unit_flag_text(core, item, sites)
    if item.kind is not Kind.WAIT_FLAG or item.event is None:
        return f"waits in {item.name} ({place(sites[item.site])})"
    sets = [
        other
        for other in core.log.items
        if other.kind is Kind.SET_FLAG
        and other.event is item.event
        and other.event_id == item.event_id
    ]
    waits = [
        other
        for other in core.log.items
        if other.kind is Kind.WAIT_FLAG
        and other.event is item.event
        and other.event_id == item.event_id
        and other.index <= item.index
    ]
    fired = sum(1 for other in sets if other.end >= 0)
    text = (
        f"waits at {place(sites[item.site])} for {item.event.name} id {item.event_id}: this is wait number "
        f"{len(waits)}, the flag was set {fired} time{'s' if fired != 1 else ''}"
    )
    pending = [other for other in sets if other.end < 0]
    if pending:
        text += f"; the next set is at {place(sites[pending[0].site])}, queued behind what waits"
    else:
        near = [
            other
            for other in core.log.items
            if other.kind is Kind.SET_FLAG
            and other.event is item.event
            and other.event_id != item.event_id
        ]
        if near:
            text += f"; a set of id {near[-1].event_id} is at {place(sites[near[-1].site])}"
        else:
            text += f"; nothing sets it: add set_flag({item.event.name}, {item.event_id}) before this wait"
    return text


def _unit_flag_text(core: Core, item: Item, sites: list[Site]) -> str:
    """Say which units of L0C an Mmad or a Fixpipe waits for, and which instruction should have changed them."""
    assert core.unit_flags is not None
    ranges, filled_by = core.unit_flags.missing(item)
    low, high = ranges[0]
    filling = item.pipe is Pipe.M
    text = (
        f"{item.name} waits at {place(sites[item.site])} for L0C[{low}:{high}] to become "
        f"{'free' if filling else 'full'} (unit flag)"
    )
    if filled_by is not None:
        text += f"; mmad at {place(sites[filled_by.site])} left it full"
    partner, pipe = ("fixpipe", Pipe.FIX) if filling else ("mmad", Pipe.M)
    others = [
        other
        for other in core.log.items
        if other.pipe is pipe and other.name == partner and _touches_units(other, low, high)
    ]
    late = [other for other in others if other.start < 0 and other.call.unit_flag == FINISH]
    if late:
        return f"{text}; the {partner} with unit_flag 3 at {place(sites[late[0].site])} is queued behind what waits"
    text += f"; no {partner} with unit_flag 3 follows"
    without = [other for other in others if other.call.unit_flag != FINISH]
    if without:
        near = without[-1]
        text += f": {partner} at {place(sites[near.site])} has unit_flag {near.call.unit_flag}"
    return text


def _touches_units(item: Item, low: int, high: int) -> bool:
    if not item.call.writes:
        return False
    access = item.call.writes[0] if item.pipe is Pipe.M else item.call.reads[0]
    return access.space is Space.L0C and access.low < high and low < access.high
