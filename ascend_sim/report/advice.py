"""One or two sentences on what holds a run back, each derived from the ledger's totals.

A sentence states the share of time that it speaks of, and what at most there is to win. Shares are of
the kernel's own time, without the launch, over all cores that use the pipe in question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ascend_sim.report.columns import CAUSE_CODE, SUB_CODE, Columns, Ints
from ascend_sim.report.employment import employed, kind_of, without_work
from ascend_sim.report.habits import Habit
from ascend_sim.report.ledger import Ledger, PipeTotals, Totals
from ascend_sim.trace import Cause, Kind, MemoryCause
from isa.types import Pipe

_WORTH_SAYING = 0.15
_BUFFERS_MATTER = 0.1
_GM_IS_THE_LIMIT = 0.75
_UNEVEN = 0.1
_MOST = 2
_EXPLAINED = {
    "bursts": ("latency", "misses", "share", "issue"),
    "stride": ("banks",),
    "scalar": ("issue", "startup"),
    "reductions": ("barriers",),
    "cores": ("misses",),
}
"""What a habit is the reason of, so that it need not be said too."""
_WORKING = [CAUSE_CODE[Cause.BUSY], CAUSE_CODE[Cause.BANK_CONFLICT]]


@dataclass(slots=True)
class _Advice:
    weight: float
    text: str


@dataclass(slots=True)
class _PipeShares:
    """One pipe over all cores that have work for it: shares of the time after the launch."""

    name: str
    busy: float
    occupied: float
    causes: dict[str, float]
    memory: dict[str, float]


@dataclass(slots=True, frozen=True)
class Facts:
    """What advice needs beside the totals, by core: all of it is in the log.

    `startup`: how long it ran before it issued anything to a pipe; `fetched`: how long its scalar unit waited for
    code after that. `held`: how long each pipe was taken
    by its instructions, so that no other could begin, waits for a share of bandwidth left out: what
    stays of a pipe's time when everything else overlaps. `gm`: the share of the kernel's time that its
    bytes take on HBM or L2 however they are ordered. `spread`: by which share the core that works shortest
    stays below the one that works longest. `even`: how long the `cores` work on average, as a share of the one that
    works longest.
    """

    startup: Mapping[str, int] = field(default_factory=dict)
    fetched: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    gm: float = 0.0
    spread: float = 1.0
    even: float = 1.0
    cores: int = 1


def gather_facts(ledger: Ledger, gm_cycles: int = 0) -> Facts:
    """Return the facts of a run; `gm_cycles` is what its bytes need of the shared memory at least."""
    startup: dict[str, int] = {}
    fetched: dict[str, int] = {}
    held: dict[str, dict[str, int]] = {}
    for entry in ledger:
        core, columns = entry.core, entry.columns
        issued = (columns["pipe"] != Pipe.S) & (columns["issue"] >= 0)
        if issued.any():
            first = int(columns["issue"][issued].min())
            startup[core.name] = max(first - core.start, 0)
            later = columns.stalls["start"] >= first
            later &= columns.stalls["cause"] == CAUSE_CODE[Cause.SCALAR]
            length = columns.stalls["end"] - columns.stalls["start"]
            fetched[core.name] = int(length[later].sum())
        taken = issued & (columns["kind"] == Kind.INSTRUCTION)
        taken &= (columns["accept"] >= columns["start"]) & (columns["start"] >= 0)
        cycles = np.where(taken, _held(columns), 0)
        sums = np.bincount(columns["pipe"], cycles, len(Pipe)).astype(np.int64).tolist()
        used = np.bincount(columns["pipe"][taken], minlength=len(Pipe)).tolist()
        held[core.name] = {pipe.name: sums[pipe] for pipe in Pipe if used[pipe]}
    cores = ledger.log.cores
    span = max((core.end for core in cores), default=0) - min(
        (core.start for core in cores), default=0
    )
    spans = [max(core.end - core.start, 0) for core in cores]
    longest = max(spans, default=0)
    spread = 1 - min(spans) / longest if longest else 0.0
    even = sum(spans) / len(spans) / longest if longest else 1.0
    gm = min(gm_cycles / span, 1.0) if span > 0 else 0.0
    return Facts(startup, fetched, held, gm, spread, even, len(spans))


def _held(columns: Columns) -> Ints:
    """Return for each item how long it keeps its pipe to itself."""
    count, parts = len(columns), columns.parts
    begin = columns["start"][parts["item"]]
    same = np.diff(parts["item"], prepend=-1) == 0
    begin = np.where(same, np.roll(parts["end"], 1), begin)
    length = parts["end"] - begin
    working = np.isin(parts["cause"], _WORKING)
    shared = parts["sub"] == SUB_CODE[MemoryCause.SHARE]
    work = np.bincount(parts["item"], np.where(working, length, 0), count).astype(np.int64)
    share = np.bincount(parts["item"], np.where(shared, length, 0), count).astype(np.int64)
    interval = columns["accept"] - columns["start"]
    # A vector instruction is still busy while its last results drain, and holds nobody up by that.
    mixed = np.where(
        columns["pipe"] == Pipe.V, np.minimum(work, interval), np.maximum(work, interval - share)
    )
    has_parts = np.bincount(parts["item"], minlength=count) > 0
    held: Ints = np.where(has_parts, mixed, interval)
    return held


def advise(
    totals: Totals,
    cycles: int,
    launch_cycles: int,
    facts: Facts | None = None,
    habits: Iterable[Habit] = (),
) -> list[str]:
    """Return up to two sentences, the weightiest first; none where nothing stands out."""
    pipes = _shares(totals)
    if not pipes:
        return []
    facts = facts or Facts()
    startup = _scalar_share(totals, facts.startup)
    fetched = _scalar_share(totals, facts.fetched)
    candidates = {
        "launch": _launch(cycles, launch_cycles),
        "gm": _gm(facts.gm),
        "share": _share(pipes, facts.gm),
        "latency": _latency(pipes),
        "misses": _misses(pipes),
        "buffers": _buffers(pipes, facts, cycles - launch_cycles),
        "barriers": _barriers(pipes),
        "startup": _startup(startup),
        "code": _code(fetched),
        "issue": _issue(pipes, startup + fetched),
        "banks": _banks(pipes),
        "cross": _cross_core(pipes),
        "tail": _tail(pipes, facts),
        "work": _work(totals),
    }
    weighty = {
        about: advice
        for about, advice in candidates.items()
        if advice is not None and advice.weight >= _WORTH_SAYING
    }
    if "gm" in weighty:
        for about in ("share", "misses", "buffers", "latency"):
            weighty.pop(about, None)  # all of them end at the same limit
    for habit in habits:
        if habit.weight >= _WORTH_SAYING:
            weighty[habit.about] = _Advice(habit.weight, habit.text)
            for about in _EXPLAINED.get(habit.about, ()):
                weighty.pop(about, None)
    if "work" in weighty:
        weighty.pop("tail", None)  # who has none waits for those who have
    if "buffers" in weighty:
        weighty.pop("latency", None)  # a second buffer is how the next copy is issued earlier
    if weighty:
        ordered = sorted(weighty.values(), key=lambda advice: -advice.weight)
        return [advice.text for advice in ordered[:_MOST]]
    busiest = max(pipes, key=lambda pipe: pipe.occupied)
    return [_close_to_limit(busiest)] if busiest.occupied >= 0.7 else []


def _shares(totals: Totals) -> list[_PipeShares]:
    by_name: dict[str, list[PipeTotals]] = {}
    working = employed(totals)
    for core, pipes in totals.items():
        kind = kind_of(core)
        if core not in working.get(kind, ()):
            continue
        for name, entry in pipes.items():
            if name != "S" and entry["instructions"]:
                by_name.setdefault(f"{kind}.{name}", []).append(entry)
    return [_PipeShares(name, *_mean(entries)) for name, entries in by_name.items()]


def _mean(entries: list[PipeTotals]) -> tuple[float, float, dict[str, float], dict[str, float]]:
    launch = sum(entry["causes"].get("launch", 0) for entry in entries)
    inner = sum(sum(entry["causes"].values()) for entry in entries) - launch
    return (
        sum(entry["busy"] for entry in entries) / max(inner, 1),
        sum(entry["occupied"] for entry in entries) / max(inner, 1),
        _sum_shares([entry["causes"] for entry in entries], inner),
        _sum_shares([entry["memory"] for entry in entries], inner),
    )


def _sum_shares(parts: list[dict[str, int]], inner: int) -> dict[str, float]:
    result: dict[str, float] = {}
    for part in parts:
        for name, cycles in part.items():
            result[name] = result.get(name, 0.0) + cycles / max(inner, 1)
    return result


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _label(pipe: _PipeShares) -> str:
    return pipe.name.partition(".")[2]


def _of(pipes: list[_PipeShares], names: tuple[str, ...]) -> list[_PipeShares]:
    return [pipe for pipe in pipes if _label(pipe) in names]


def _most(pipes: list[_PipeShares], cause: str) -> tuple[_PipeShares, float] | None:
    """Return the pipe that spends the largest share on `cause`."""
    if not pipes:
        return None
    pipe = max(pipes, key=lambda entry: _get(entry.causes, cause))
    return pipe, _get(pipe.causes, cause)


def _get(shares: Mapping[str, float], name: str) -> float:
    return shares.get(name, 0.0)


def _launch(cycles: int, launch_cycles: int) -> _Advice | None:
    share = launch_cycles / cycles if cycles else 0.0
    if share < 0.4:
        return None
    return _Advice(
        2 * share,
        f"The launch takes {_percent(share)} of the time: nothing inside the kernel can win more than "
        f"{_percent(1 - share)}. Give each launch more work.",
    )


def _work(totals: Totals) -> _Advice | None:
    """Cores that the launch pays for and nobody needs: the shape is too small for them."""
    found = without_work(totals)
    return None if found is None else _Advice(1 + found[0], found[1])


def _gm(gm: float) -> _Advice | None:
    """GM bandwidth, shared by all cores: the limit that no overlap moves."""
    if gm < _GM_IS_THE_LIMIT:
        return None
    return _Advice(
        2.0,
        f"GM is the limit: the bytes alone take {_percent(gm)} of the kernel's time, however they are ordered. Overlap "
        f"(more buffers, other tiles, more cores) cannot help: there is at most {_percent(1 - gm)} to win. Move fewer "
        "bytes: read a table once for several heads, or keep the working set in L2.",
    )


def _share(pipes: list[_PipeShares], gm: float) -> _Advice | None:
    """The path to GM, shared by the cores of an AI Core and by a core's loads and stores."""
    found = _most_memory(pipes, "share")
    if found is None:
        return None
    pipe, share = found
    return _Advice(
        share,
        f"{_label(pipe)} waits {_percent(share)} of the kernel's time because others move bytes too: the two vector "
        "cores of an AI Core share its window to GM, and a core's loads and stores share its bus. GM as a whole is "
        f"needed {_percent(gm)} of the time.",
    )


def _latency(pipes: list[_PipeShares]) -> _Advice | None:
    found = _most_memory(pipes, "latency")
    if found is None:
        return None
    pipe, share = found
    # A store holds its pipe until it is through, so only a load gains from being issued earlier.
    earlier = (
        ", or issue the next copy before the last one has arrived" if _label(pipe) == "MTE2" else ""
    )
    return _Advice(
        share,
        f"{_label(pipe)} waits {_percent(share)} of the kernel's time for GM to answer (latency): copy larger "
        f"pieces{earlier}.",
    )


def _misses(pipes: list[_PipeShares]) -> _Advice | None:
    found = _most_memory(pipes, "l2_miss")
    if found is None:
        return None
    pipe, share = found
    return _Advice(
        share,
        f"{_label(pipe)} waits {_percent(share)} of the kernel's time because its bytes are not in L2 and come "
        "from HBM, where one core draws less: reuse what is there while it is there, or let more cores load at "
        "once. --l2 warm shows the time without this.",
    )


def _most_memory(pipes: list[_PipeShares], cause: str) -> tuple[_PipeShares, float] | None:
    """Return the pipe that moves GM and spends the largest share on a sub-cause of memory."""
    movers = _of(pipes, ("MTE2", "MTE3", "FIX"))
    if not movers:
        return None
    pipe = max(movers, key=lambda entry: _get(entry.memory, cause))
    return pipe, _get(pipe.memory, cause)


def _buffers(pipes: list[_PipeShares], facts: Facts, kernel_cycles: int) -> _Advice | None:
    """Copy in waits until compute has read the only buffer: what a second one would give."""
    found = _most(_of(pipes, ("MTE2", "V", "MTE3")), "buffer")
    if found is None or found[1] < _BUFFERS_MATTER or kernel_cycles <= 0:
        return None
    pipe, share = found
    needs, busiest = max(
        (
            (cycles / kernel_cycles, name)
            for core in facts.held.values()
            for name, cycles in core.items()
        ),
        default=(0.0, ""),
    )
    if facts.gm > needs:
        needs, busiest = facts.gm, "GM"
    win = max(1 - needs, 0.0)
    # Besides the wait itself, overlap hides the latency of the copies that could be issued earlier.
    return _Advice(
        min(share + _get(pipe.memory, "latency"), win),
        f"{_label(pipe)} waits {_percent(share)} of the kernel's time for a free buffer. One more buffer in each queue "
        "(BUFFER_NUM 2, with tiles that still fit) lets copy in, compute and copy out of different tiles "
        f"overlap; {busiest} alone needs {_percent(1 - win)} of it, so overlap can win at most {_percent(win)}.",
    )


def _barriers(pipes: list[_PipeShares]) -> _Advice | None:
    found = _most(pipes, "barrier")
    if found is None:
        return None
    pipe, share = found
    return _Advice(
        share,
        f"{_label(pipe)} stands {_percent(share)} of the kernel's time at barriers: drop those that order nothing, "
        "and let one barrier serve several independent instructions.",
    )


def _scalar_share(totals: Totals, spent: Mapping[str, int]) -> float:
    scalar = [totals[core]["S"] for core in spent if "S" in totals[core]]
    inner = sum(
        sum(entry["causes"].values()) - entry["causes"].get("launch", 0) for entry in scalar
    )
    return sum(spent.values()) / inner if inner else 0.0


def _startup(share: float) -> _Advice:
    return _Advice(
        share,
        f"{_percent(share)} of the kernel's time goes by before the first instruction is issued (fetching code, "
        "making the TPipe, its buffers, reading the tiling): give each block more work, so that it weighs less.",
    )


def _code(share: float) -> _Advice:
    return _Advice(
        share,
        f"{_percent(share)} of the kernel's time cores wait for code that they run for the first time: give each block "
        "more work, so that it weighs less, and call a function in a loop rather than from several places, since each "
        "way to a call is code of its own.",
    )


def _issue(pipes: list[_PipeShares], elsewhere: float) -> _Advice | None:
    """The scalar unit issues too slowly: a pipe that is needed has nothing in its queue."""
    busiest = max(pipes, key=lambda entry: entry.occupied)
    share = _get(busiest.causes, "scalar") - elsewhere
    return _Advice(
        share,
        f"{_label(busiest)}, the busiest pipe, has nothing to do for {_percent(share)} of the kernel's time because "
        "nothing was issued to it: fewer and larger instructions (more repeats or bytes each) and fewer scalar "
        "reads in the loop would help.",
    )


def _banks(pipes: list[_PipeShares]) -> _Advice | None:
    found = _most(_of(pipes, ("V",)), "bank_conflict")
    if found is None:
        return None
    _, share = found
    return _Advice(
        2 * share,
        f"V repeats accesses for {_percent(share)} of the kernel's time because operands lie in the same UB banks: "
        "shift one of the operands by a few rows of 32 bytes so that they do not start in one bank group.",
    )


def _cross_core(pipes: list[_PipeShares]) -> _Advice | None:
    found = _most(pipes, "cross_core")
    if found is None or found[1] <= _longest_tail(pipes):
        return None
    pipe, share = found
    return _Advice(
        share,
        f"{_label(pipe)} waits {_percent(share)} of the kernel's time for another core: let producer and consumer "
        "work on different tiles, so that each finds its input ready.",
    )


def _tail(pipes: list[_PipeShares], facts: Facts) -> _Advice | None:
    tail, cross = _longest_tail(pipes), _most(pipes, "cross_core")
    even, cores = facts.even, facts.cores
    if facts.spread < _UNEVEN or (cross is not None and cross[1] > tail):
        return None  # all work equally long: what is left of the tail is the launch, core by core
    return _Advice(
        tail,
        f"Cores that are done wait {_percent(tail)} of the kernel's time for the slowest one: split the work "
        f"more evenly. On average the {cores} cores work {_percent(even)} as long as the slowest; finer tiles, or as "
        f"many for each core, would level that.",
    )


def _longest_tail(pipes: list[_PipeShares]) -> float:
    return max(_get(pipe.causes, "tail") for pipe in pipes)


def _close_to_limit(busiest: _PipeShares) -> str:
    return (
        f"{_label(busiest)} is occupied {_percent(busiest.occupied)} of the kernel's time: this kernel is close to the "
        f"limit of its structure, and only less work on {_label(busiest)} makes it much faster."
    )
