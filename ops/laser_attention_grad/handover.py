"""How cube and vector cores hand scores to each other: who waited for whom in each round, and what that cost.

Reads a run's log. A wait counts in full as `waited`; `idle` is the part of it during which the core had nothing left
to do: its earlier work goes on while the scalar unit waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_sim.trace import CoreLog, Item, Kind
from isa.types import CoreKind
from ops.laser_attention_grad.arguments import ALL_CUBES, ALL_VECTORS, C2V, V2C
from ops.laser_attention_grad.plan import Plan
from ops.laser_attention_grad.sizes import BLOCK
from ops.laser_attention_grad.tiling import Tiling

if TYPE_CHECKING:
    from ascend_sim import Run

FLAGS = {
    C2V: "cube to vectors: S and dP of a round are in GM (mode 2, set on FIX)",
    V2C: "vectors to cube: P and dS of a round are in GM (mode 2, set on MTE3)",
    ALL_VECTORS: "all vector cores: the inputs are transposed (mode 0, SBH only)",
    ALL_CUBES: "all cube cores: the rounds are over (mode 0, head dim 192 only)",
}


@dataclass(slots=True)
class Waits:
    """Waits of the cores of one kind for one flag in one round, in cycles.

    `waited` and `idle` are sums over all of them; `mean` and `longest` look at those that have work in the round.
    """

    cores: int = 0
    waited: int = 0
    idle: int = 0
    of_active: int = 0
    longest: int = 0
    longest_core: str = ""

    def add(self, core: str, waited: int, idle: int, *, active: bool) -> None:
        """Take one core's wait."""
        self.waited += waited
        self.idle += idle
        if active:
            self.cores += 1
            self.of_active += waited
            if waited > self.longest:
                self.longest, self.longest_core = waited, core

    def figures(self) -> dict[str, Any]:
        """Return the figures for the summary."""
        mean = round(self.of_active / self.cores) if self.cores else 0
        return {
            "waited": self.waited,
            "idle": self.idle,
            "mean": mean,
            "longest": self.longest,
            "longest_core": self.longest_core,
        }


@dataclass(slots=True)
class Core:
    """One core of the main phase: its span, its pipes' busiest work and its waits."""

    log: CoreLog
    first: int = -1
    last: int = 0
    idle: int = 0
    waited: int = 0
    rounds: dict[int, tuple[int, int]] = field(default_factory=dict)


def explain(run: Run, tiling: Tiling) -> None:
    """Add the hand-over to the run's summary: `handover`, and lines of text for readers."""
    main = run.log.phases.index("main") if "main" in run.log.phases else -1
    cores = [_follow(log, main) for log in run.log.cores]
    cores = [core for core in cores if core.first >= 0]
    if not cores:
        return
    plan = plan_of(tiling)
    rounds = [_round(number, plan, cores) for number in range(plan.rounds)]
    spans = {kind: _span(cores, kind) for kind in CoreKind}
    idle = {kind: sum(core.idle for core in cores if core.log.kind is kind) for kind in CoreKind}
    lost = {
        kind.name.lower(): round(idle[kind] / spans[kind], 4) if spans[kind] else 0.0
        for kind in CoreKind
    }
    active = [
        sum(plan.is_active(core, r) for core in range(plan.cores)) for r in range(plan.rounds)
    ]
    figures = {
        "flags": {str(flag): meaning for flag, meaning in FLAGS.items()},
        "rounds": rounds,
        "lost_share": lost,
        "core_rounds": sum(active),
        "core_rounds_possible": plan.rounds * plan.cores,
        "blocks_per_core": _blocks_per_core(plan),
    }
    run.extra["handover"] = figures
    run.extra["explanation"] = {"Hand-over between cube and vector cores": _text(figures, plan)}


def plan_of(tiling: Tiling) -> Plan:
    """Return the plan that the kernel makes of a tiling's record."""
    window = tiling.window_len // BLOCK if tiling.is_sparse else 0
    return Plan(tiling.sizes, tiling.has_mask, window, tiling.blocks)


def _follow(log: CoreLog, main: int) -> Core:
    """Return one core's waits of the main phase, in the order of its rounds."""
    core = Core(log)
    landed = 0
    flag = V2C if log.kind is CoreKind.AIC else C2V
    for item in log.items:
        if item.phase == main:
            if core.first < 0:
                core.first = item.issue
            core.last = max(core.last, item.end)
            if _is_wait(item, flag):
                waited = item.start - item.head
                idle = max(0, item.start - max(item.head, landed))
                core.rounds[len(core.rounds)] = (waited, idle)
                core.waited += waited
                core.idle += idle
        landed = max(landed, item.end)
    return core


def _is_wait(item: Item, flag: int) -> bool:
    return item.kind is Kind.WAIT_FLAG and item.event is None and item.event_id == flag


def _round(number: int, plan: Plan, cores: list[Core]) -> dict[str, Any]:
    waits = {kind: Waits() for kind in CoreKind}
    for core in cores:
        if number in core.rounds:
            active = any(plan.is_active(block, number) for block, _, _ in core.log.blocks)
            waits[core.log.kind].add(core.log.name, *core.rounds[number], active=active)
    return {
        "round": number,
        "active": sum(plan.is_active(core, number) for core in range(plan.cores)),
        "vectors_for_cube": waits[CoreKind.AIV].figures(),
        "cube_for_vectors": waits[CoreKind.AIC].figures(),
    }


def _span(cores: list[Core], kind: CoreKind) -> int:
    return sum(core.last - core.first for core in cores if core.log.kind is kind)


def _blocks_per_core(plan: Plan) -> dict[str, float]:
    """Return the fewest, mean and most blocks that a core computes."""
    counts = [
        sum(segment.computed for r in range(plan.rounds) for segment in plan.segments(core, r))
        for core in range(plan.cores)
    ]
    return {"fewest": min(counts), "mean": round(sum(counts) / len(counts), 2), "most": max(counts)}


def _text(figures: dict[str, Any], plan: Plan) -> list[str]:
    rounds = figures["rounds"]
    lines = [
        f"{plan.rounds} round{'s' if plan.rounds > 1 else ''} of 16 slots a core; flag {C2V}: S and dP are in GM, "
        f"flag {V2C}: P and dS are in GM"
    ]
    shown = rounds if len(rounds) <= 6 else [*rounds[:3], *rounds[-3:]]
    for entry in shown:
        vectors, cube = entry["vectors_for_cube"], entry["cube_for_vectors"]
        lines.append(
            f"round {entry['round']}, {entry['active']} of {plan.cores} cores with work: vector cores wait "
            f"{vectors['mean']:,} cycles for the cube on flag {C2V} (longest {vectors['longest']:,}), cube cores "
            f"{cube['mean']:,} for the vectors on flag {V2C} (longest {cube['longest']:,})"
        )
    if len(shown) < len(rounds):
        lines.insert(4, f"({len(rounds) - len(shown)} rounds between are in summary.json)")
    lost, blocks = figures["lost_share"], figures["blocks_per_core"]
    lines.append(
        f"with nothing left to do for {100 * lost['aic']:.0f} % of the cube cores' and "
        f"{100 * lost['aiv']:.0f} % of the vector cores' time: the cube is at most two rounds ahead"
    )
    lines.append(
        f"blocks a core: {blocks['fewest']} to {blocks['most']}, mean {blocks['mean']}; "
        f"{figures['core_rounds']} of {figures['core_rounds_possible']} core-rounds have work"
    )
    return lines
