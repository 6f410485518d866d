"""Sweeps and the tuner: many runs of one operator or program, over values of its parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def sweep(
    target: str | os.PathLike[str],
    space: Mapping[str, Any] | Sequence[str],
    *,
    fixed: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> pandas.DataFrame:
    """Run `target`, an operator's name or a Python file, at every point of `space`; return a data frame.

    `space` maps names to values, or to ranges as text ("2^10..2^13", "1,2", "256:1024:256"). A name is a constant of
    the operator or of the file, an option of the operator (`seq`), or an option of a run (`chip`, `cores`, `l2`, …);
    `fixed` gives others of them one value. Runs are timing only unless `numerics` and `checks` say otherwise.

    Results are kept in the folder `out` (default: one below `sweeps/` for this target and these names), and the same
    call again runs only what is missing. `workers` is the number of processes (the machine's cores where None),
    `scheduler` the address of a Dask scheduler whose workers run the points instead.

    A point that fails is a row whose `status` and `reason` say why. Raises `ConfigError` for an unknown target or
    name, an empty space, and a folder that holds anything else.
    """
    from ascend_sim.tuning.space import read_space  # noqa: PLC0415  most programs never sweep
    from ascend_sim.tuning.sweeps import run_sweep  # noqa: PLC0415  as above
    from ascend_sim.tuning.task import Task  # noqa: PLC0415  as above

    task = Task(os.fspath(target), dict(fixed or {}))
    return run_sweep(task, read_space(space), out=out, workers=workers, scheduler=scheduler).frame()
