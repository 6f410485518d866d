"""The longest chain of dependences, beside runs in which nothing is shared and no queue is ever full."""

from __future__ import annotations

import numpy as np
import pytest
from seeded import streamed

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.report.chain import longest_chain
from ascend_sim.run import Run
from tests.machine.kit import hand_over, local, window


def chain_of(run: Run) -> int:
    return longest_chain(run.ledger, run.chip)


@pytest.mark.parametrize(
    "changes",
    [{}, {"num": 1}, {"barrier": 1}, {"work": 8}, {"tile": 512, "count": 60, "wrap": 60}, {"l2": "cold"}],
)  # fmt: skip
def test_without_contention_and_full_queues_a_run_is_as_long_as_its_chain(
    changes: dict[str, object],
) -> None:
    run = streamed(blocks=40, **changes)  # type: ignore[arg-type]
    (row,) = run.what_if(["contention+queue"]).rows
    assert 0.9 * row.cycles <= chain_of(run) <= row.cycles <= run.cycles


def test_a_chain_across_pipes_by_hand() -> None:
    """A load, an add behind both flags, a store: on the chip of round numbers every step is known."""

    def kernel(x: asc.GlobalAddress) -> None:
        mine = x + 64 * asc.get_block_idx()
        asc.data_copy(local(0, 64), window(mine), 64)
        hand_over(asc.HardEvent.MTE2_V)
        asc.adds(local(0, 64), local(0, 64), 1.0, 64)
        hand_over(asc.HardEvent.V_MTE3)
        asc.data_copy(window(mine), local(0, 64), 64)

    # Load 204 from cycle 10, set 1, visible 10, add 21, set 1, visible 10, store 104.
    x = np.zeros(64 * 4, np.float32)
    run = sim.launch(kernel, x, chip="toy")
    assert chain_of(run) == run.cycles == 10 + 204 + 1 + 10 + 21 + 1 + 10 + 104
    assert run.summary["as_written"]["limit"] == "dependences"
    assert chain_of(sim.launch(kernel, x, chip="toy", cores=4)) == run.cycles


def test_blocks_that_follow_on_one_core_are_one_chain() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.adds(local(0, 64), local(0, 64), 1.0, 64)

    run = sim.launch(
        kernel, np.zeros(64, np.float32), chip="toy", cores=5, physical_cores=1, checks="off"
    )
    assert chain_of(run) == run.cycles
