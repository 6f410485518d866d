"""Random legal programs for one vector core, and an independent account of what orders what in them.

A program is a list of steps on a few UB slots and two GM arrays, with the flags and barriers that its true
dependences ask for. `Program.unordered` finds, by reachability in a graph of starts and ends, the conflicting
pairs that nothing orders once some of the synchronisation is left out. It shares no code with the checker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ascend_sim import asc
from isa.stream import EagerStream
from isa.tensor import GlobalAddress, GmBuffer
from isa.types import Space, dtype_of

SLOTS = 5
SLOT = 256  # elements of float32
GM = 2048  # elements of each array
BLOCK = 8  # elements of 32 bytes
WINDOW = 16
"""Instructions of one pipe further apart than this count as ordered (the sanitizer's rule)."""

Bytes = frozenset[tuple[str, int]]
"""Elements, in fact: (memory, index). Everything is float32."""


@dataclass
class Step:
    """One instruction: its pipe, its source text, and the elements that it reads and writes."""

    pipe: str
    text: str
    reads: Bytes
    writes: Bytes


@dataclass
class Sync:
    """A flag (`event` set) or a barrier. `key` is the same for the set and the wait that belong together."""

    pipe: str
    text: str
    key: int
    kind: str  # "set", "wait", "barrier", "all"


Element = Step | Sync


def conflict(first: Step, second: Step) -> bool:
    """Whether two steps touch an element that one of them writes."""
    return bool(first.writes & (second.reads | second.writes) or first.reads & second.writes)


def finished(step: Step) -> bool:
    """Whether a step is over before anything behind it is issued: the scalar unit waits for what it reads."""
    return step.pipe == "S" and not step.writes


@dataclass
class Program:
    """Steps and synchronisation in program order; `keys` names what may be left out."""

    seed: int
    elements: list[Element] = field(default_factory=list)

    @property
    def keys(self) -> list[int]:
        """Every flag pair and barrier once."""
        return sorted({element.key for element in self.elements if isinstance(element, Sync)})

    def without(self, key: int) -> list[Element]:
        """The program without one flag pair or barrier."""
        return [e for e in self.elements if not (isinstance(e, Sync) and e.key == key)]

    @cached_property
    def steps(self) -> list[Step]:
        """The instructions alone."""
        return [element for element in self.elements if isinstance(element, Step)]


# ---- generating -----------------------------------------------------------------------------


def _slot(number: int, start: int = 0) -> str:
    return f"local({4 * SLOT * number}, {SLOT})[{start}:]"


def _ub(number: int, elements: Any) -> Bytes:
    return frozenset(("UB", SLOT * number + int(i)) for i in elements)


def _gm(name: str, elements: Any) -> Bytes:
    return frozenset((name, int(i)) for i in elements)


class Generator:
    """Makes one program of a seed."""

    def __init__(self, seed: int, scalars: bool = False) -> None:
        self.random = random.Random(seed)
        self.program = Program(seed)
        self.scalars = scalars
        self.known: dict[str, dict[str, int]] = {p: {} for p in ("S", "V", "MTE2", "MTE3")}
        self.count = dict.fromkeys(self.known, 0)
        self.history: list[tuple[Step, int]] = []
        self.next_key = 0
        self.event_ids: dict[str, int] = {}

    def make(self, length: int) -> Program:
        """Return a program of `length` random steps, after loads of all slots."""
        for number in range(SLOTS):
            self.add(self._whole_load(number))
        makers: list[Callable[[], Step]] = [
            self._load, self._load, self._store, self._store, self._reload, self._binary, self._binary,
            self._unary, self._strided, self._duplicate, self._copy,
        ]  # fmt: skip
        if self.scalars:
            makers += [self._set_value, self._get_value]
        for _ in range(length):
            if self.random.random() < 0.04:
                self._all()
            self.add(self.random.choice(makers)())
        return self.program

    # ---- steps ------------------------------------------------------------------------------

    def _piece(self, limit: int = SLOT) -> tuple[int, int]:
        """Return start and count, in whole blocks."""
        count = BLOCK * self.random.randint(1, limit // BLOCK)
        start = BLOCK * self.random.randint(0, (limit - count) // BLOCK)
        return start, count

    def _whole_load(self, number: int) -> Step:
        text = f"asc.data_copy({_slot(number)}, x_gm[{SLOT * number}:], {SLOT})"
        elements = range(SLOT * number, SLOT * (number + 1))
        return Step("MTE2", text, _gm("x", elements), _ub(number, range(SLOT)))

    def _load(self, name: str = "x") -> Step:
        number = self.random.randrange(SLOTS)
        if self.random.random() < 0.3:
            return self._load_rows(name, number)
        start, count = self._piece()
        offset = BLOCK * self.random.randint(0, (GM - count) // BLOCK)
        text = f"asc.data_copy({_slot(number, start)}, {name}_gm[{offset}:], {count})"
        return Step(
            "MTE2",
            text,
            _gm(name, range(offset, offset + count)),
            _ub(number, range(start, start + count)),
        )

    def _load_rows(self, name: str, number: int) -> Step:
        rows, blocks = self.random.randint(2, 4), self.random.randint(1, 3)
        source_gap, target_gap = self.random.randint(0, 8), self.random.randint(0, 4)
        offset = BLOCK * self.random.randint(0, 20)
        text = (
            f"asc.data_copy({_slot(number)}, {name}_gm[{offset}:], "
            f"asc.DataCopyParams({rows}, {blocks}, {source_gap}, {target_gap}))"
        )
        reads = _rows(offset, rows, blocks, source_gap)
        writes = _rows(0, rows, blocks, target_gap)
        return Step("MTE2", text, _gm(name, reads), _ub(number, writes))

    def _reload(self) -> Step:
        """Load what stores may have written."""
        return self._load("z")

    def _store(self) -> Step:
        number = self.random.randrange(SLOTS)
        start, count = self._piece(128)
        offset = BLOCK * self.random.randint(0, 511 // BLOCK)
        text = f"asc.data_copy(z_gm[{offset}:], {_slot(number, start)}, {count})"
        return Step(
            "MTE3",
            text,
            _ub(number, range(start, start + count)),
            _gm("z", range(offset, offset + count)),
        )

    def _binary(self) -> Step:
        target, first, second = (self.random.randrange(SLOTS) for _ in range(3))
        start, count = self._piece()
        name = self.random.choice(["add", "sub", "max", "min"])
        text = f"asc.{name}({_slot(target, start)}, {_slot(first, start)}, {_slot(second, start)}, {count})"
        span = range(start, start + count)
        return Step("V", text, _ub(first, span) | _ub(second, span), _ub(target, span))

    def _unary(self) -> Step:
        target, source = self.random.randrange(SLOTS), self.random.randrange(SLOTS)
        start, count = self._piece()
        name, scalar = self.random.choice([("adds", 1.25), ("muls", 0.5)])
        text = f"asc.{name}({_slot(target, start)}, {_slot(source, start)}, {scalar}, {count})"
        span = range(start, start + count)
        return Step("V", text, _ub(source, span), _ub(target, span))

    def _strided(self) -> Step:
        """A mask form: some lanes of two to four blocks of each repeat, every other block or all."""
        target, source = self.random.sample(range(SLOTS), 2)
        repeats, lanes = (
            self.random.randint(1, 3),
            self.random.randint(1, 4) * BLOCK - self.random.randint(0, 5),
        )
        target_block, source_block = self.random.randint(1, 2), self.random.randint(1, 2)
        pitch = 8
        text = (
            f"asc.adds({_slot(target)}, {_slot(source)}, 2.5, mask={lanes}, repeat_times={repeats}, "
            f"repeat_params=asc.UnaryRepeatParams({target_block}, {source_block}, {pitch}, {pitch}))"
        )

        def touched(stride: int) -> Iterator[int]:
            for repeat in range(repeats):
                for lane in range(lanes):
                    block, inside = divmod(lane, BLOCK)
                    yield (repeat * pitch + block * stride) * BLOCK + inside

        return Step(
            "V", text, _ub(source, touched(source_block)), _ub(target, touched(target_block))
        )

    def _duplicate(self) -> Step:
        number = self.random.randrange(SLOTS)
        start, count = self._piece()
        text = f"asc.duplicate({_slot(number, start)}, {self.random.randint(-9, 9)}.5, {count})"
        return Step("V", text, frozenset(), _ub(number, range(start, start + count)))

    def _copy(self) -> Step:
        target, source = self.random.sample(range(SLOTS), 2)
        start, count = self._piece()
        text = f"asc.data_copy({_slot(target, start)}, {_slot(source, start)}, {count})"
        span = range(start, start + count)
        return Step("V", text, _ub(source, span), _ub(target, span))

    def _set_value(self) -> Step:
        number, element = self.random.randrange(SLOTS), self.random.randrange(SLOT)
        text = f"{_slot(number)}.set_value({element}, {self.random.randint(-9, 9)}.25)"
        return Step("S", text, frozenset(), _ub(number, [element]))

    def _get_value(self) -> Step:
        number, element = self.random.randrange(SLOTS), self.random.randrange(SLOT)
        return Step(
            "S",
            f"seen.append({_slot(number)}.get_value({element}))",
            _ub(number, [element]),
            frozenset(),
        )

    # ---- synchronisation --------------------------------------------------------------------

    def add(self, step: Step) -> None:
        """Append a step behind what its dependences ask for."""
        needed = [
            (old, number)
            for old, number in self.history
            if conflict(old, step) and not finished(old)
        ]
        self.random.shuffle(needed)
        for old, number in needed:
            self._order(old.pipe, number, step.pipe)
        self.program.elements.append(step)
        self.count[step.pipe] += 1
        self.history.append((step, self.count[step.pipe]))

    def _order(self, source: str, number: int, target: str) -> None:
        if source == target == "S" or self.known[target].get(source, 0) >= number:
            return
        self.next_key += 1
        emit = self.program.elements.append
        if source == target:
            emit(
                Sync(
                    source, f"asc.pipe_barrier(asc.PipeID.PIPE_{source})", self.next_key, "barrier"
                )
            )
            self.known[source][source] = self.count[source]
            return
        event = f"{source}_{target}"
        event_id = self.event_ids[event] = (self.event_ids.get(event, -1) + 1) % 8
        flag = f"(asc.HardEvent.{event}, {event_id})"
        emit(Sync(source, f"asc.set_flag{flag}", self.next_key, "set"))
        emit(Sync(target, f"asc.wait_flag{flag}", self.next_key, "wait"))
        token = {**self.known[source], source: self.count[source]}
        for lane in (
            self.known if target == "S" else [target]
        ):  # the scalar unit hands on what it knows
            for pipe, count in token.items():
                self.known[lane][pipe] = max(self.known[lane].get(pipe, 0), count)

    def _all(self) -> None:
        """A barrier of all pipes: from here on everybody knows that everything is complete."""
        self.next_key += 1
        text = "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"
        self.program.elements.append(Sync("S", text, self.next_key, "all"))
        for lane in self.known:
            self.known[lane] = dict(self.count)


def _rows(start: int, rows: int, blocks: int, gap: int) -> Iterator[int]:
    for row in range(rows):
        first = start + row * (blocks + gap) * BLOCK
        yield from range(first, first + blocks * BLOCK)


# ---- what orders what -----------------------------------------------------------------------


def unordered(elements: list[Element]) -> list[tuple[int, int]]:
    """Return the conflicting pairs of steps that nothing orders, as indices into `elements`, by second then first.

    A step has a start and an end. Edges: a pipe starts its items in order; a set comes after the ends of all
    earlier steps of its pipe; a wait comes after its set; a barrier after the ends of its pipe's earlier steps, or of
    all earlier steps; every item after the items of the scalar unit that stand before it.
    """
    before: list[set[int]] = []  # for each element: the steps whose end comes before its start
    set_of: dict[int, set[int]] = {}
    last: dict[str, int] = {}
    done: dict[str, set[int]] = {}
    place: dict[int, int] = {}
    counts: dict[str, int] = {}
    found = []
    for index, element in enumerate(elements):
        pipe = element.pipe
        ready = set(before[last[pipe]]) if pipe in last else set()
        if "S" in last:
            ready |= before[last["S"]]
        if isinstance(element, Sync):
            if element.kind == "wait":
                ready |= set_of[element.key]
            elif element.kind == "barrier":
                ready |= done.get(pipe, set())
            elif element.kind == "all":
                ready |= set().union(*done.values())
            else:
                set_of[element.key] = ready | done.get(pipe, set())
        before.append(ready)
        last[pipe] = index
        if isinstance(element, Step):
            counts[pipe] = place[index] = counts.get(pipe, 0) + 1
            for old in range(index - 1, -1, -1):
                other = elements[old]
                if not isinstance(other, Step) or old in ready or not conflict(other, element):
                    continue
                if finished(other):
                    continue
                if other.pipe == pipe and (pipe == "S" or place[index] - place[old] > WINDOW):
                    continue
                found.append((old, index))
            done.setdefault(pipe, set()).add(index)
    return found


# ---- running --------------------------------------------------------------------------------

HEAD = """\
def kernel(x, z, dump):
    x_gm, z_gm, dump_gm = window(x), window(z), window(dump)
"""
TAIL = f"""\
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.data_copy(dump_gm, local(0, {SLOTS * SLOT}), {SLOTS * SLOT})
"""
FIRST_LINE = HEAD.count("\n") + 1
"""The line of the first element; every element has a line of its own."""


def compiled(elements: list[Element], name: str) -> tuple[Callable[..., None], list[float]]:
    """Return the kernel, and the list that its scalar reads go to."""
    from tests.machine.kit import (
        local,
        window,
    )  # the kit imports the machine, this module only needs it here

    source = HEAD + "".join(f"    {element.text}\n" for element in elements) + TAIL
    seen: list[float] = []
    scope: dict[str, Any] = {"asc": asc, "local": local, "window": window, "seen": seen}
    exec(compile(source, name, "exec"), scope)
    return scope["kernel"], seen


def arrays(seed: int) -> list[np.ndarray[Any, Any]]:
    """Input, input and output, and room for what UB holds in the end."""
    generator = np.random.default_rng(seed)
    x, z = (generator.normal(size=GM).astype(np.float32) for _ in range(2))
    return [x, z, np.zeros(SLOTS * SLOT, np.float32)]


def eagerly(elements: list[Element], seed: int) -> list[bytes]:
    """Run every instruction at once, in program order; return what is left in GM, and what was read."""
    kernel, seen = compiled(elements, "eager")
    data = arrays(seed)
    addresses = [
        GlobalAddress(GmBuffer(name, array.view(np.uint8), index), dtype_of(array.dtype))
        for index, (name, array) in enumerate(zip(("x", "z", "dump"), data, strict=True), 1)
    ]
    with EagerStream({Space.UB: 196608}):
        kernel(*addresses)
    return [*(array.tobytes() for array in data), np.array(seen).tobytes()]
