"""The whole kernel of `rope_grad` on the toy chip, every time worked out by hand.

Tiles of eight rows, 2048 bytes a buffer: all buffers start in the same bank groups, so the add and both mul pay two
cycles a repeat; copy and muls touch half of each row, and pay one. Eight repeats each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim.run import Run
from ops.rope_grad import reference
from ops.rope_grad.inputs import Shape, default_inputs
from ops.rope_grad.kernel import rope_grad
from tests.machine.kit import instructions, items, times

HIDDEN = 256
PROCESS = 1024


def run(seq: list[int], buffers: int = 1) -> Run:
    """One of the two heads, one block."""
    inputs = default_inputs(Shape(tuple(seq), HIDDEN, max(seq), sum(seq)), 1)
    outputs = [np.zeros_like(inputs[0]) for _ in range(2)]
    record = np.array([max(seq), HIDDEN, 128, sum(seq), len(seq)], np.int64)
    result = sim.launch(
        rope_grad, *inputs, *outputs, record, np.array(seq, np.int32), PROCESS, buffers,
        cores=1, chip="toy", outputs=[],
    )  # fmt: skip
    for got, want in zip(outputs, reference.library(*inputs, seq), strict=True):
        np.testing.assert_array_equal(got[:, :128], want[:, :128])
    return result


def scalar(result: Run) -> list[tuple[str, int]]:
    return [(item.name, item.start) for item in items(result, "S")]


def tile(start: int) -> dict[str, list[tuple[int, int]]]:
    """Start and end of every instruction of a tile whose first load starts at a cycle; 32 cycles of bytes a load.

    The second load starts ten cycles later and waits at the port. Each other one starts when the one before it has
    begun to pass there.
    """
    begins = [start, start + 10, start + 32, start + 64]
    loads = [(begin, start + 200 + 32 * (i + 1)) for i, begin in enumerate(begins)]
    copy = loads[-1][1] + 11
    vector = [(copy, copy + 28), (copy + 28, copy + 56)]
    for _ in range(3):
        vector.append((vector[-1][1], vector[-1][1] + 36))
    store = vector[-1][1] + 11
    return {
        "MTE2": loads,
        "V": vector,
        "MTE3": [(store, store + 132), (store + 132, store + 264)],
    }


def measured(result: Run) -> dict[str, list[tuple[int, int]]]:
    return {pipe: times(instructions(result, pipe)) for pipe in ("MTE2", "V", "MTE3")}


def test_one_tile() -> None:
    result = run([8])
    expected = tile(531)
    assert measured(result) == expected
    assert expected["V"][-1][1] == 1034
    assert expected["MTE3"][-1][1] == 1309
    # The record's line comes from HBM, its other four fields from the data cache; the length is elsewhere.
    assert scalar(result)[:8] == [
        ("get_value", 0), ("get_value", 200), ("get_value", 205), ("get_value", 210), ("get_value", 215),
        ("pipe_barrier", 221), ("TPipe", 221), ("get_value", 321),
    ]  # fmt: skip
    # The free events of the outputs: set 1310, seen 1320; then the kernel's end.
    assert result.cycles == 1321


def test_two_tiles_with_one_buffer() -> None:
    """The second tile's loads wait for the flags that stand behind the first one's last mul."""
    result = run([16])
    first, second = tile(531), tile(1034 + 11)
    assert measured(result) == {pipe: first[pipe] + second[pipe] for pipe in first}
    assert result.cycles == second["MTE3"][-1][1] + 1 + 10 + 1
    assert result.pipes["core0.aiv0"]["MTE2"]["causes"]["buffer"] > 0


def test_two_tiles_with_two_buffers() -> None:
    """The second tile's loads follow at once: their bytes queue behind the first one's. The rest is in order."""
    result = run([16], buffers=2)
    loads = measured(result)["MTE2"]
    assert [start for start, _ in loads[:5]] == [531, 541, 563, 595, *[loads[4][0]]]
    assert [end for _, end in loads] == [531 + 200 + 32 * (i + 1) for i in range(8)]
    first = tile(531)
    assert measured(result)["V"][:5] == first["V"]
    later = [(start + 164, end + 164) for start, end in first["V"]]
    assert first["V"][-1][1] == first["V"][0][0] + 164
    assert measured(result)["V"][5:] == later
    assert measured(result)["MTE3"][:2] == first["MTE3"]
    assert measured(result)["MTE3"][2][0] == first["MTE3"][-1][1]


def test_two_samples() -> None:
    """The barrier of all pipes between them waits for the stores, and the next length is in the same line."""
    result = run([8, 8])
    first = tile(531)
    barrier = items(result, "S", "pipe_barrier")[1]
    assert barrier.start >= first["MTE3"][-1][1]
    second = instructions(result, "MTE2")[4]
    assert (
        second.issue == barrier.start + 5 + 4 + 10
    )  # the length, four waits for buffers, the load


def test_the_same_on_every_run_and_with_both_heads() -> None:
    def both(chip: str) -> Any:
        seq = [8, 3]
        inputs = default_inputs(Shape(tuple(seq), HIDDEN, max(seq), sum(seq)), 1)
        outputs = [np.zeros_like(inputs[0]) for _ in range(2)]
        record = np.array([max(seq), HIDDEN, 128, sum(seq), len(seq)], np.int64)
        result = sim.launch(
            rope_grad, *inputs, *outputs, record, np.array(seq, np.int32), PROCESS, 1,
            cores=2, chip=chip,
        )  # fmt: skip
        assert result.findings == []
        return result.cycles, [array.tobytes() for array in outputs]

    first, again, other = both("toy"), both("toy"), both("ascend910b1")
    assert first == again
    assert first[1] == other[1]
