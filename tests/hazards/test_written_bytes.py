"""Which bytes of a memory are written, against one flag for each byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascend_sim.written import _Memory

SIZE = 40

_span = st.tuples(st.integers(0, SIZE - 1), st.integers(1, 12)).map(
    lambda span: (span[0], min(sum(span), SIZE))
)


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "gaps", "lose"]), _span)))
def test_ranges_and_bits_together_know_each_byte(steps: list[tuple[str, tuple[int, int]]]) -> None:
    memory, flags = _Memory(SIZE), np.zeros(SIZE, bool)
    for what, (low, high) in steps:
        if what == "add":
            memory.add(low, high)
            flags[low:high] = True
        elif what == "remove":
            memory.forget(low, high)
            flags[low:high] = False
        elif what == "gaps":
            memory.change(low, high)[low:high:2] = True
            flags[low:high:2] = True
        else:
            memory.change(low, high)[low:high:3] = False
            flags[low:high:3] = False
        for start in range(SIZE):
            if memory.covers(start, start + 3):
                assert flags[start : start + 3].all()
    assert np.array_equal(memory.bits(), flags)


@given(st.lists(_span, min_size=1))
def test_ranges_alone_tell_of_all_that_has_no_gaps(spans: list[tuple[int, int]]) -> None:
    memory, flags = _Memory(SIZE), np.zeros(SIZE, bool)
    for low, high in spans:
        memory.add(low, high)
        flags[low:high] = True
    for low in range(SIZE):
        for high in range(low + 1, SIZE + 1):
            assert memory.covers(low, high) == flags[low:high].all()
