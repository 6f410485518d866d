"""Random programs on the cores of mix kernels against an order worked out by brute force.

A program is a list of steps, in one order that all of them can happen in: copies between GM and the core's own
memory on MTE2 or MTE3, flags and barriers inside a core, flags between cores, all cores meeting. Two accesses of
different cores to one byte of GM race if neither is ordered before the other and one of them stores (two atomic
additions do not). The brute force knows every edge that the rules name, and nothing of epochs, rows or levels.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import E, everything, toy_run, window

BLOCK = 8
"""float32 of the smallest piece that is copied."""
PLACES = 6
CORES = {
    "MIX_AIC_1_2": ("aic", "aiv0", "aiv1"),
    "MIX_AIC_1_1": ("aic", "aiv0"),
    "AIV_ONLY": ("aiv",),
}
PIPES = ("MTE2", "MTE3")
PIPE_ID = {"MTE2": asc.PipeID.PIPE_MTE2, "MTE3": asc.PipeID.PIPE_MTE3, "ALL": asc.PipeID.PIPE_ALL}


@dataclass
class Step:
    """`what` a core does: copy (pipe, first, last, adds), flag (from, to), barrier (pipe), set, wait, meet."""

    core: tuple[int, str]
    what: str
    pipe: str = ""
    other: str = ""
    first: int = 0
    last: int = 0
    adds: bool = False
    flag: int = 0
    mode: int = 0


@dataclass
class Program:
    kind: str
    blocks: int
    steps: list[Step] = field(default_factory=list)

    @property
    def cores(self) -> list[tuple[int, str]]:
        return [(block, core) for block in range(self.blocks) for core in CORES[self.kind]]

    def of(self, core: tuple[int, str]) -> list[Step]:
        return [step for step in self.steps if step.core == core]


def draw(seed: int) -> Program:
    """Return a random program that cannot hang: every wait comes behind its set in the one order of the list."""
    r = random.Random(seed)
    kind = r.choice(list(CORES))
    program = Program(kind, r.randint(1, 2) if kind != "AIV_ONLY" else r.randint(2, 3))
    sync = r.choice((0.2, 0.5, 0.8))
    for _ in range(r.randint(4, 24)):
        if r.random() < sync:
            program.steps += draw_sync(r, program)
        else:
            first = r.randrange(PLACES)
            program.steps.append(
                Step(
                    r.choice(program.cores),
                    "copy",
                    r.choice(PIPES),
                    first=first,
                    last=min(PLACES, first + r.randint(1, 2)),
                    adds=r.random() < 0.3,
                )
            )
    return program


def draw_sync(r: random.Random, program: Program) -> list[Step]:
    core = r.choice(program.cores)
    choices = ["flag", "barrier", "meet"] + (["between"] * 4 if program.kind != "AIV_ONLY" else [])
    what = r.choice(choices)
    if what == "flag":
        source, target = r.choice([("MTE2", "MTE3"), ("MTE3", "MTE2")])
        return [Step(core, "flag", source, target)]
    if what == "barrier":
        return [Step(core, "barrier", r.choice(("MTE2", "MTE3", "ALL")))]
    vectors = [one for one in program.cores if one[1].startswith("aiv")]
    if what == "meet":
        return [Step(one, "meet") for one in vectors]
    block = core[0]
    mine = [one for one in program.cores if one[0] == block]
    vectors = [one for one in mine if one[1] != "aic"]
    mode = r.choice((1, 2, 3))  # 3: from the cube core
    senders = vectors if mode != 3 else [(block, "aic")]
    receivers = vectors if mode != 2 else [(block, "aic")]
    flag = r.randrange(11)
    steps = [Step(one, "set", r.choice(PIPES), flag=flag, mode=min(mode, 2)) for one in senders]
    return steps + [Step(one, "wait", flag=flag) for one in receivers]


# ---- on the simulator -----------------------------------------------------------------------


def kernel(z: asc.GlobalAddress, program: Program) -> None:
    cube = asc.ascend_is_aic()
    if program.kind == "AIV_ONLY":
        core = (asc.get_block_idx(), "aiv")
    else:
        ratio = len(CORES[program.kind]) - 1
        core = (asc.get_block_idx(), "aic")
        if not cube:
            core = (asc.get_block_idx() // ratio, f"aiv{asc.get_sub_block_idx()}")
    position = asc.TPosition.A1 if cube else asc.TPosition.VECCALC
    memory = asc.LocalTensor(asc.float32, position, 0, PLACES * BLOCK)
    for step in program.of(core):
        if step.what == "copy":
            count = (step.last - step.first) * BLOCK
            there = window(z)[step.first * BLOCK :]
            if step.pipe == "MTE2":
                asc.data_copy(memory, there, count)
            else:
                if step.adds:
                    asc.set_atomic_add(asc.float32)
                asc.data_copy(there, memory, count)
                asc.set_atomic_none()
        elif step.what == "flag":
            event = getattr(E, f"{step.pipe}_{step.other}")
            asc.set_flag(event, 0)
            asc.wait_flag(event, 0)
        elif step.what == "barrier":
            asc.pipe_barrier(PIPE_ID[step.pipe])
        elif step.what == "set":
            asc.cross_core_set_flag(step.flag, step.mode, PIPE_ID[step.pipe])
        elif step.what == "wait":
            asc.cross_core_wait_flag(step.flag, 0, asc.PipeID.PIPE_S)
        elif not cube:
            asc.sync_all()


def launch(program: Program, **options: Any) -> Run:
    return toy_run(
        kernel,
        np.zeros(PLACES * BLOCK, np.float32),
        program,
        cores=program.blocks,
        kernel_type=program.kind,
        names=["z", "program"],
        **options,
    )


# ---- by brute force -------------------------------------------------------------------------


class Orderer:
    """All edges between what happens, and what can be reached from where."""

    def __init__(self, program: Program) -> None:
        self.edges: dict[Any, set[Any]] = defaultdict(set)
        self.copies: list[tuple[Step, Any, Any]] = []
        self.tokens: dict[Any, list[Any]] = defaultdict(list)
        self.rounds: dict[Any, list[Any]] = defaultdict(list)
        self.program = program
        self.count = 0
        self.issued: dict[Any, Any] = {}  # by core: the scalar unit's last step
        self.earlier: dict[Any, list[Any]] = defaultdict(
            list
        )  # by core and pipe: ends of its copies
        self.gate: dict[Any, list[Any]] = defaultdict(
            list
        )  # by core and pipe: what later starts wait for
        for step in program.steps:
            self.take(step)

    def node(self, name: str) -> tuple[str, int]:
        self.count += 1
        return name, self.count

    def issue(self, core: Any) -> Any:
        node = self.node("issue")
        if core in self.issued:
            self.edges[self.issued[core]].add(node)
        self.issued[core] = node
        return node

    def signal(self, core: Any, pipe: str) -> Any:
        """A set in a pipe: behind its issue, what its pipe waits for, and the ends of all its earlier copies."""
        node = self.node("set")
        self.edges[self.issue(core)].add(node)
        for end in (*self.earlier[core, pipe], *self.gate[core, pipe]):
            self.edges[end].add(node)
        return node

    def hold(self, core: Any, signal: Any) -> None:
        """A wait of the scalar unit."""
        self.edges[signal].add(self.issue(core))

    def take(self, step: Step) -> None:
        core, pipe = step.core, step.pipe
        if step.what == "copy":
            start, end = self.node("start"), self.node("end")
            self.edges[self.issue(core)].add(start)
            self.edges[start].add(end)
            for gate in self.gate[core, pipe]:
                self.edges[gate].add(start)
            self.earlier[core, pipe].append(end)
            self.copies.append((step, start, end))
        elif step.what == "flag":
            node = self.signal(core, pipe)
            self.issue(core)
            self.gate[core, step.other].append(node)
        elif step.what == "barrier" and pipe != "ALL":
            node = self.signal(core, pipe)
            self.gate[core, pipe].append(node)
        elif step.what == "barrier":
            self.drain(core)
        elif step.what == "set":
            node = self.signal(core, pipe)
            self.send(step, node)
        elif step.what == "wait":
            self.hold(core, self.tokens[core, step.flag].pop(0))
        else:
            self.meet(step)

    def drain(self, core: Any) -> None:
        node = self.issue(core)
        for pipe in PIPES:
            for end in (*self.earlier[core, pipe], *self.gate[core, pipe]):
                self.edges[end].add(node)

    def send(self, step: Step, node: Any) -> None:
        block, name = step.core
        vectors = [one for one in self.program.cores if one[0] == block and one[1] != "aic"]
        if step.mode == 2 and name == "aic":
            for one in vectors:
                self.tokens[one, step.flag].append(node)
            return
        mine = self.rounds[block, step.mode, step.flag]
        mine.append(node)
        if len(mine) == len(vectors):
            joined = self.node("round")
            for one in mine:
                self.edges[one].add(joined)
            mine.clear()
            for one in vectors if step.mode == 1 else [(block, "aic")]:
                self.tokens[one, step.flag].append(joined)

    def meet(self, step: Step) -> None:
        """sync_all: drain, set on MTE3, wait; the last of all vector cores lets everybody go on."""
        self.drain(step.core)
        mine = self.rounds["meet"]
        mine.append((step.core, self.signal(step.core, "MTE3")))
        if len(mine) == sum(core[1] != "aic" for core in self.program.cores):
            joined = self.node("round")
            for _, one in mine:
                self.edges[one].add(joined)
            for core, _ in mine:
                self.hold(core, joined)
            mine.clear()

    def reach(self, node: Any) -> set[Any]:
        found, todo = set(), [node]
        while todo:
            for follower in self.edges[todo.pop()]:
                if follower not in found:
                    found.add(follower)
                    todo.append(follower)
        return found

    def races(self) -> set[tuple[int, int]]:
        """Pairs of copies, by number, that share bytes and that nothing orders."""
        reach = {end: self.reach(end) for _, _, end in self.copies}
        found = set()
        for (i, one), (j, other) in combinations(enumerate(self.copies), 2):
            (a, start_a, end_a), (b, start_b, end_b) = one, other
            if a.core == b.core or a.first >= b.last or b.first >= a.last:
                continue
            if a.pipe == b.pipe == "MTE2" or (a.pipe == b.pipe == "MTE3" and a.adds and b.adds):
                continue
            if start_b not in reach[end_a] and start_a not in reach[end_b]:
                found.add((i, j))
        return found


def between_cores(run: Run) -> list[Any]:
    return [finding for finding in run.findings if finding.code.startswith("race-blocks")]


def is_clear(run: Run) -> bool:
    """Whether each wait can only be for the set that it is for; else the brute force does not know better."""
    return all(finding.code != "cross-core-flag-mixed" for finding in run.findings)


VERDICTS = {True: 0, False: 0}


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_races_are_those_that_brute_force_finds(seed: int) -> None:
    program = draw(seed)
    races = Orderer(program).races()
    run = launch(program)
    if is_clear(run):
        assert bool(between_cores(run)) is bool(races), seed
        VERDICTS[bool(races)] += 1


def test_both_verdicts_occurred() -> None:
    assert min(VERDICTS.values()) > 20


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(5000):
        program = draw(seed)
        races = Orderer(program).races()
        run = launch(program)
        if is_clear(run):
            assert bool(between_cores(run)) is bool(races), seed


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_neither_shuffling_nor_another_chip_changes_a_verdict(seed: int) -> None:
    program = draw(seed)
    first = launch(program)
    assert all(
        everything(launch(program, shuffle=shuffle)) == everything(first) for shuffle in range(3)
    )
    other = launch(program, chip="ascend910b1")
    assert told(other) == told(first)


def told(run: Run) -> list[tuple[str, str, int, str]]:
    """What the findings say, but for whether they struck and how often."""
    return sorted(
        (f.code, f.message, f.line, f.tensor)
        for f in run.findings
        if f.code.startswith("race-blocks")
    )
