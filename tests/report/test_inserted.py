"""What automatic synchronisation inserts is marked in both trace files, and only that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import ascend_sim as sim
from ascend_sim import asc


@asc.jit(auto_sync=True)
def chain(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 128)
    asc.duplicate(t, 1.0, 128)
    asc.adds(t, t, 1.0, 128)  # needs the first one's result: a barrier is inserted
    asc.pipe_barrier(asc.PipeID.PIPE_V)  # the kernel's own
    asc.adds(t, t, 1.0, 128)


def test_inserted_barriers_are_marked_in_both_traces(tmp_path: Path) -> None:
    run = sim.launch(chain, np.zeros(128, np.float16), chip="toy")
    folder = run.save(str(tmp_path / "run"))
    trace = json.loads((Path(folder) / "trace.json").read_text())["traceEvents"]
    barriers = [event for event in trace if event.get("name") == "BAR"]
    assert sorted(event["args"]["detail"] for event in barriers) == ["", "inserted by auto_sync"]
    perfetto = json.loads((Path(folder) / "trace.perfetto.json").read_text())["traceEvents"]
    marked = [event for event in perfetto if event.get("args", {}).get("inserted_by")]
    assert [event["name"] for event in marked] == ["inserted: pipe_barrier"]
