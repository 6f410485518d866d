"""How far the simulator's time is from published measurements of real kernels.

A *family* is one kernel that somebody timed on the hardware; a *record* one configuration (or sweep) of it; a
*pair* two records that differ by one change. Figures come from a case file, kernels from
`benchmarks/measured/<family>.py`. A family's module has one function, `simulate(record) -> dict`: it builds
the kernel of that record, launches it and returns what `measure.times` makes of the run.
"""

from ascend_sim.accuracy.cases import CaseFile, Pair, Record, load_cases
from ascend_sim.accuracy.measure import average, sweep, time_launch, times, total

__all__ = [
    "CaseFile",
    "Pair",
    "Record",
    "average",
    "load_cases",
    "sweep",
    "time_launch",
    "times",
    "total",
]
