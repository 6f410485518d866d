"""Which cores have work, and what to say where most of them have none."""

from __future__ import annotations

from ascend_sim.report.ledger import Totals

_HARDLY = 0.05
_MOST = 0.5
_KINDS = {"aic": "cube", "aiv": "vector"}


def kind_of(core: str) -> str:
    """Return "aic" or "aiv" for "core3.aiv1"."""
    return core.rpartition(".")[2].rstrip("0123456789")


def employed(totals: Totals) -> dict[str, set[str]]:
    """Return by kind of core the names of those that have work.

    Without work is a core whose pipes beside S are occupied less than 5 % as long as those of the busiest
    core of its kind. A kind that nobody of works is left out.
    """
    found: dict[str, set[str]] = {}
    for kind in _KINDS:
        effort = {
            core: sum(
                entry["occupied"] + entry["causes"].get("bank_conflict", 0)
                for name, entry in pipes.items()
                if name != "S"
            )
            for core, pipes in totals.items()
            if kind_of(core) == kind
        }
        most = max(effort.values(), default=0)
        if most:
            found[kind] = {core for core, cycles in effort.items() if cycles >= _HARDLY * most}
    return found


def without_work(totals: Totals) -> tuple[float, str] | None:
    """Return the largest share of a kind's cores without work and the advice; None where most cores have some."""
    parts, shares = [], [0.0]
    for kind, working in employed(totals).items():
        every = sum(kind_of(core) == kind for core in totals)
        if every > 1 and every - len(working) >= _MOST * every:
            parts.append(f"{every - len(working)} of {every} {_KINDS[kind]} cores")
            shares.append(1 - len(working) / every)
    if not parts:
        return None
    text = (
        f"{' and '.join(parts)} have no work, or hardly any: this shape, with this tiling, gives fewer pieces than "
        "there are cores. A larger shape would take hardly longer; smaller pieces would let more cores take part; "
        "fewer cores would begin and end sooner."
    )
    return max(shares), text
