"""Resources made ideal, one at a time: another chip, or a recording without what costs the time.

An ideal is a question, no advice: what would this run take if that resource were free, or twice as fast? Most are a
chip with other numbers, exactly as a chip file with these numbers would be; the others change what was issued.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ascend_sim.config import Chip, VectorCost
from ascend_sim.flag_items import OF_SOURCE
from ascend_sim.recording import Part, Recording
from ascend_sim.trace import Kind, Log
from isa.instruction import Call

PLENTY = 1000
"""How many times what a chip has stands for more than anything can use."""

_FIRST_FLAG = OF_SOURCE >> 1
"""Flags of queues with one more buffer: none of the kernel's own. Below those of a source pipe, which are one bit:
several buffers may be free at once."""


@dataclass(frozen=True, slots=True)
class Ideal:
    """One resource made ideal: another chip, another recording, or more cores than there are.

    `on_path` says of a row of the critical path whether its time is this resource's; None where the path does not
    show it.
    """

    means: str
    chip: Callable[[Chip], Chip] | None = None
    recording: Callable[[Recording], Recording] | None = None
    cores: int = 1
    on_path: Callable[[Mapping[str, Any]], bool] | None = None


def changed(chip: Chip, factors: Mapping[str, float]) -> Chip:
    """Return a chip with some of its numbers, by key path, multiplied; what counts whole things stays whole."""
    sections: dict[str, dict[str, Any]] = {}
    for path, factor in factors.items():
        name, _, key = path.partition(".")
        section = getattr(chip, name)
        keys = type(section).model_fields if key == "*" else (key,)
        for one in keys:
            value = getattr(section, one)
            scaled = type(value)(value * factor) if not isinstance(value, dict) else {
                of: type(number)(number * factor) for of, number in value.items()
            }  # fmt: skip
            sections.setdefault(name, {})[one] = scaled
    update = {
        name: getattr(chip, name).model_copy(update=values) for name, values in sections.items()
    }
    return chip.model_copy(update=update)


def _times(**factors: float) -> Callable[[Chip], Chip]:
    named = {path.replace("__", "."): factor for path, factor in factors.items()}
    return lambda chip: changed(chip, named)


def _vector(chip: Chip) -> Chip:
    """Every vector instruction in half its time."""
    faster = changed(chip, {"vector.min_issue": 0.5, "vector.drain": 0.5})
    return faster.model_copy(update={"vector_costs": _costs(chip, 0.5, 0.5)})


def _overhead(chip: Chip) -> Chip:
    """Every instruction and copy costs only what its data take."""
    free = {
        "vector.drain": 0.0,
        "gm.write_head": 0.0,
        "gm.move_issue": 0.0,
        "cube.issue": 0.0,
        "cube.depth": 0.0,
    }
    free |= {"scalar.vector_issue": 0.0, "scalar.move_issue": 0.0, "scalar.cube_issue": 0.0}
    free |= {"mte1.head": 0.0, "mte1.bt_head": 0.0, "mte1.fb_head": 0.0, "fixpipe.gm_head": 0.0}
    free |= {"fixpipe.l1_head": 0.0}
    bare = changed(_latency(chip), free)
    return bare.model_copy(update={"vector_costs": _costs(chip, 0.0, 1.0)})


def _costs(chip: Chip, startup: float, slope: float) -> dict[str, dict[str, VectorCost]]:
    return {
        name: {
            of: VectorCost(startup=cost.startup * startup, slope=cost.slope * slope)
            for of, cost in costs.items()
        }
        for name, costs in chip.vector_costs.items()
    }


def _perfect_l2(chip: Chip) -> Chip:
    """Every load as if L2 held it."""
    gm = chip.gm.model_copy(
        update={
            "latency_hbm": chip.gm.latency_l2_read,
            "window_core": chip.gm.window_core * PLENTY,
            "window_aiv": chip.gm.window_aiv * PLENTY,
        }
    )
    scalar = chip.scalar.model_copy(
        update={"gm_miss": min(chip.scalar.gm_miss, chip.gm.latency_l2_read)}
    )
    return changed(chip, {"hbm.gbps": PLENTY}).model_copy(update={"gm": gm, "scalar": scalar})


def _latency(chip: Chip) -> Chip:
    """GM answers in the next cycle; what one core may have in flight moves at the rate it had."""
    gm = chip.gm
    window = 1 / gm.latency_hbm
    update = {
        "latency_l2_read": 1.0, "latency_l2_write": 1.0, "latency_hbm": 1.0, "write_head": 1.0,
        "window_core": max(int(gm.window_core * window), 1),
        "window_aiv": max(int(gm.window_aiv * window), 1),
    }  # fmt: skip
    return chip.model_copy(update={"gm": gm.model_copy(update=update)})


def _sectors(chip: Chip) -> Chip:
    """Loads and stores move blocks of 32 bytes, however a row lies."""
    return chip.model_copy(update={"gm": chip.gm.model_copy(update={"sector": 32})})


# ---- recordings ---------------------------------------------------------------------------------


def _without_conflicts(recording: Recording) -> Recording:
    calls = []
    for call in recording.calls:
        if isinstance(call, Call) and call.geometry:
            call = copy.copy(call)
            call.geometry, call.template = (), call
        calls.append(call)
    return replace(recording, calls=calls)


def _without_barriers(recording: Recording) -> Recording:
    """Leave out all barriers but the one that ends a kernel."""
    barrier = np.array([step.kind is Kind.BARRIER for step in recording.steps], bool)
    parts = []
    for part in recording.parts:
        keep = ~barrier[part.steps]
        keep[-1:] = True
        parts.append(replace(part, steps=part.steps[keep]))
    return replace(recording, parts=parts)


def note_frees(recording: Recording, log: Log) -> None:
    """Remember in a recording which set of a queue's free event each `alloc_tensor` waited for.

    One row a wait: its item, the set's item, the number of the queue.
    """
    frees: list[list[tuple[int, int, int]]] = []
    for core in log.cores:
        ends = [*core.firsts[1:], len(core.items)]
        for first, end in zip(core.firsts, ends, strict=True):
            queues: dict[str, int] = {}
            rows = []
            for row in range(first, end):
                item = core.items[row]
                if item.forget is not None and item.partner is not None:
                    label = item.forget[0].label.rpartition("[")[0]
                    queue = queues.setdefault(label, len(queues))
                    rows.append((row - first, item.partner.index - first, queue))
            frees.append(rows)
    recording.frees = frees


def _one_more_buffer(recording: Recording) -> Recording:
    """Let every `alloc_tensor` of a queue wait for what the one before it waited for."""
    steps = list(recording.steps)
    known = {step: number for number, step in enumerate(steps)}

    def flagged(number: int, flag: int) -> int:
        step = steps[number]._replace(flag=flag)
        if step not in known:
            known[step] = len(steps)
            steps.append(step)
        return known[step]

    parts: list[Part] = []
    for part, rows in zip(recording.parts, recording.frees, strict=True):
        own = part.steps.copy()
        keep = np.ones(len(own), bool)
        met: set[int] = set()
        for wait, setter, queue in rows:
            own[setter] = flagged(int(own[setter]), _FIRST_FLAG + queue)
            own[wait] = flagged(int(own[wait]), _FIRST_FLAG + queue)
            if queue not in met:
                keep[wait] = False
                met.add(queue)
        parts.append(replace(part, steps=own[keep]))
    return replace(recording, steps=steps, parts=parts)


def _pipe(name: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: bool(row["pipe"] == name and row["what"] in ("work", "move", "way"))


def _cause(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: row["cause"] in names or row["sub_cause"] in names


def _what(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: row["what"] in names


IDEALS: dict[str, Ideal] = {
    "mte2": Ideal(
        "MTE2 moves bytes twice as fast",
        _times(
            gm__read_port_aiv=2, gm__read_port_aic=2, gm__window_core=2, gm__window_aiv=2,
            gm__read_write_sum_aiv=2,
        ),
        on_path=_pipe("MTE2"),
    ),
    "mte3": Ideal(
        "MTE3 moves bytes twice as fast",
        _times(gm__write_port_aiv=2, gm__write_port_aic=2, gm__read_write_sum_aiv=2),
        on_path=_pipe("MTE3"),
    ),
    "mte1": Ideal(
        "MTE1 moves bytes twice as fast",
        _times(mte1__l0a_port=2, mte1__l0b_port=2, mte1__bt_port=2, mte1__fb_port=2),
        on_path=_pipe("MTE1"),
    ),
    "fixpipe": Ideal(
        "fixpipe moves bytes twice as fast",
        _times(fixpipe__gm_port=2, fixpipe__l1_port=2),
        on_path=_pipe("FIX"),
    ),
    "vector": Ideal("V takes half the time for everything", _vector, on_path=_pipe("V")),
    "cube": Ideal(
        "M takes half the time for a fractal", _times(cube__cycles_per_fractal=0.5),
        on_path=_pipe("M"),
    ),
    "scalar": Ideal(
        "the scalar unit issues and accesses memory in no time",
        _times(
            scalar__vector_issue=0, scalar__move_issue=0, scalar__cube_issue=0, scalar__flag_issue=0,
            scalar__barrier_issue=0, scalar__ub_access=0, scalar__gm_hit=0, scalar__gm_miss=0,
            scalar__pipe_init=0, icache__miss=0,
        ),
        on_path=lambda row: row["what"] in ("issue", "fetch") or row["pipe"] == "S",
    ),
    "sync": Ideal(
        "flags cost nothing, inside a core and between cores",
        _times(
            sync__set=0, sync__visible=0, sync__cross_core=0, sync__sync_all_us=0,
            sync__sync_all_soft_us=0, scalar__flag_issue=0,
        ),
        on_path=_what("set", "handover"),
    ),
    "barrier": Ideal("no barriers", recording=_without_barriers),
    "buffer": Ideal("one more buffer in each queue", recording=_one_more_buffer),
    "queue": Ideal(
        "instruction queues that are never full",
        _times(
            queues__V=64, queues__M=64, queues__MTE1=64, queues__FIX=64, queues__MTE2_aic=64,
            queues__MTE2_aiv=64, queues__MTE3_aic=64, queues__MTE3_aiv=64,
        ),
    ),
    "banks": Ideal(
        "no bank conflicts in UB", recording=_without_conflicts, on_path=_cause("bank_conflict")
    ),
    "l2": Ideal("every load hits L2", _perfect_l2, on_path=_cause("l2_miss")),
    "contention": Ideal(
        "L2 and HBM serve every core as if it were alone",
        _times(
            l2__read_gbps=PLENTY, l2__mixed_gbps=PLENTY, hbm__gbps=PLENTY, gm__window_core=3,
            gm__same_line=0, hbm__row_cycle=0,
        ),
        on_path=_cause("share", "same_line"),
    ),
    "latency": Ideal("GM answers at once", _latency, on_path=_cause("latency")),
    "overhead": Ideal(
        "instructions and copies cost only what their data take: no startup, no latency", _overhead
    ),
    "alignment": Ideal("loads and stores move no bytes around those asked for", _sectors),
    "launch": Ideal(
        "launching costs nothing", _times(launch__base_us=0, launch__per_core_us=0),
        on_path=_what("launch"),
    ),
    "cores": Ideal("twice as many cores", _times(cores__aic=2, cores__aiv=2), cores=2),
}  # fmt: skip
"""What `what_if` can make ideal, by name."""
