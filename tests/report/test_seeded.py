"""One seeded cause of lost time in each kernel: the ledger blames it, and undoing it is what-if's first row."""

from __future__ import annotations

import pytest
from seeded import SEEDS

QUICK = ("one buffer", "bank conflict")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(SEEDS)],
)
def test_the_added_time_is_in_the_right_class_and_the_first_row_undoes_it(name: str) -> None:
    seed = SEEDS[name]
    plain, seeded = seed.plain(), seed.seeded()
    added = seeded.cycles - plain.cycles
    assert added > 0.2 * plain.cycles, "the seed costs too little to say anything"
    assert seed.cycles(seeded) - seed.cycles(plain) >= 0.95 * added
    first = seeded.what_if(pairs=False).rows[0]
    assert first.ideals == (seed.ideal,)
    assert first.gain >= 0.5 * added
