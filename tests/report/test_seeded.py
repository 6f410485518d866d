"""One seeded cause of lost time in each kernel: the ledger blames it, and undoing it is what-if's first row."""

from __future__ import annotations

import pytest
from seeded import SEEDS, Seed
from seeded_others import OTHERS, multiplied

QUICK = ("one buffer", "bank conflict")
ALL = {
    **{f"{name}, stream": seed for name, seed in SEEDS.items()},
    **{f"{name}, other": seed for name, seed in OTHERS.items()},
}


def test_every_cause_is_seeded_twice() -> None:
    assert SEEDS.keys() == OTHERS.keys()
    assert len(SEEDS) == 10


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(
            seed, id=name, marks=() if name.partition(",")[0] in QUICK else pytest.mark.slow
        )
        for name, seed in sorted(ALL.items())
    ],
)
def test_the_added_time_is_in_the_right_class_and_the_first_row_undoes_it(seed: Seed) -> None:
    plain, seeded = seed.plain(), seed.seeded()
    added = seeded.cycles - plain.cycles
    assert added > 0.2 * plain.cycles, "the seed costs too little to say anything"
    assert seed.cycles(seeded) - seed.cycles(plain) >= 0.95 * added
    first = seeded.what_if(pairs=False).rows[0]
    assert first.ideals == (seed.ideal,)
    assert first.gain >= 0.5 * added


def test_one_more_buffer_in_each_queue_of_a_cube_core_is_the_kernel_with_one_more() -> None:
    """Buffers of a queue come free faster than they are taken: none of the sets is lost."""
    one = multiplied(products=3, num=1, steps=8)
    (row,) = one.what_if(["buffer"]).rows
    assert row.cycles == multiplied(products=3, num=2, steps=8).cycles < one.cycles
