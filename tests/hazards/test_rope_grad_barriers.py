"""The barriers of `rope_grad`'s kernel, taken out one by one from a copy of its source.

A tile runs copy (work, left halves), muls (work, right halves), add (all of work), mul (q), mul (k), a barrier
of V behind each. Which of the five order anything:

1. copy and muls write disjoint halves: nothing to order, and the second barrier covers both for the add.
2. the add reads what the muls writes.
3. the mul of q reads what the add writes.
4. the two mul share sources only; the barrier before them covers both, the one behind them as well.
5. the next tile's copy overwrites `work` while this tile's last mul may still read it, a WAR inside pipe V. With
   one buffer a queue other flags order the two already: the input queues' free events lead from V to MTE2
   (V_MTE2, set behind the last mul), and the next tile's enqueue events back from MTE2 to V (MTE2_V). With two
   buffers the free event that the next tile waits for is the one of the tile before, so nothing does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.run import Run
from ops.rope_grad import kernel as original
from ops.rope_grad import reference
from ops.rope_grad.inputs import Shape, default_inputs

SEQ = [37, 8, 21]
HIDDEN = 256
PROCESS = 1024  # eight rows a tile
SOURCE = Path(original.__file__).read_text(encoding="utf-8")
BARRIER = "asc.pipe_barrier(asc.PipeID.PIPE_V)"
BARRIER_ALL = "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"


def mutant(text: str, *left_out: int) -> Any:
    """Return the kernel of a copy of the source whose barriers with these numbers (from 1) are gone, lines kept."""
    pieces = SOURCE.split(text)
    source = pieces[0]
    for number, piece in enumerate(pieces[1:], 1):
        source += ("pass" if number in left_out else text) + piece
    scope: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(source, original.__file__, "exec"), scope)
    return scope["rope_grad"]


def run(kernel: Any, buffers: int, chip: str = "ascend910b1") -> tuple[Run, bool]:
    """Return the run, and whether both results are the library's bit for bit."""
    inputs = default_inputs(Shape(tuple(SEQ), HIDDEN, max(SEQ), sum(SEQ)), 3)
    outputs = [np.zeros_like(inputs[0]) for _ in range(2)]
    record = np.array([max(SEQ), HIDDEN, 128, sum(SEQ), len(SEQ)], np.int64)
    lengths = np.array(SEQ, np.int32)
    result = sim.launch(
        kernel, *inputs, *outputs, record, lengths, PROCESS, buffers, cores=HIDDEN // 128, chip=chip
    )
    expected = reference.library(*inputs, SEQ)
    same = all(np.array_equal(got, want) for got, want in zip(outputs, expected, strict=True))
    return result, same


def races(result: Run) -> set[tuple[str, str, str]]:
    """Code, earlier instruction and later instruction of every finding; all of them races inside V."""
    found = set()
    for finding in result.findings:
        assert (finding.kind, finding.pipe, finding.related[0]["pipe"]) == ("RACE", "V", "V")
        first, second = finding.related[0]["line"], finding.line
        found.add((finding.code, statement(first), statement(second)))
    return found


def statement(line: int) -> str:
    """What a line of the kernel does, as call and destination: `mul k_grad_local`."""
    text = SOURCE.splitlines()[line - 1].strip()
    call, _, rest = text.partition("(")
    return f"{call.removeprefix('asc.')} {rest.partition(',')[0]}"


COPY, MULS, ADD, MUL_Q, MUL_K = (
    "data_copy work", "muls work[half:]", "add work", "mul q_grad_local", "mul k_grad_local",
)  # fmt: skip


def test_the_source_has_what_these_tests_take_out() -> None:
    assert SOURCE.count(BARRIER) == 5
    assert SOURCE.count(BARRIER_ALL) == 2


@pytest.mark.parametrize("buffers", [1, 2])
def test_nothing_taken_out(buffers: int) -> None:
    result, same = run(mutant(BARRIER), buffers)
    assert result.findings == []
    assert same


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("number", [1, 4])
def test_barriers_that_order_nothing(number: int, buffers: int) -> None:
    result, same = run(mutant(BARRIER, number), buffers)
    assert result.findings == []
    assert same


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("chip", ["ascend910b1", "toy"])
@pytest.mark.parametrize(
    ("number", "expected"), [(2, ("race-raw", MULS, ADD)), (3, ("race-raw", ADD, MUL_Q))]
)
def test_barriers_of_true_dependences(
    number: int, expected: tuple[str, str, str], chip: str, buffers: int
) -> None:
    result, same = run(mutant(BARRIER, number), buffers, chip)
    assert expected in races(result)
    assert True in {f.struck for f in result.findings if f.code == expected[0]}
    assert not same


def test_the_second_barrier_orders_writes_too() -> None:
    """The add overwrites what the muls writes, so that its absence makes two races."""
    result, _ = run(mutant(BARRIER, 2), 1)
    assert races(result) == {("race-raw", MULS, ADD), ("race-waw", MULS, ADD)}


def test_the_fifth_with_two_buffers() -> None:
    result, same = run(mutant(BARRIER, 5), 2)
    assert ("race-war", MUL_K, COPY) in races(result)
    assert {code for code, _, _ in races(result)} == {"race-war"}
    assert all(finding.struck is False for finding in result.findings)
    assert same  # an in-order pipe rarely shows it


def test_the_fifth_with_one_buffer() -> None:
    """See the top of this file: V_MTE2 and MTE2_V of the input queues order the two tiles."""
    result, same = run(mutant(BARRIER, 5), 1)
    assert result.findings == []
    assert same


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("numbers", [(1,), (2,), (1, 2)])
def test_barriers_of_all_pipes(numbers: tuple[int, ...], buffers: int) -> None:
    """The queues order all that the barriers of all pipes do: the record is read by the scalar unit alone."""
    result, same = run(mutant(BARRIER_ALL, *numbers), buffers)
    assert result.findings == []
    assert same


def test_barriers_of_all_pipes_cost_time() -> None:
    with_them, without = (
        run(mutant(BARRIER_ALL, *numbers), 2)[0].cycles for numbers in ((), (1, 2))
    )
    assert without < with_them


@pytest.mark.parametrize("numbers", [(1, 4), (2, 3), (1, 2, 3, 4, 5)])
def test_several_at_once(numbers: tuple[int, ...]) -> None:
    result, same = run(mutant(BARRIER, *numbers), 2)
    silent = set(numbers) <= {1, 4}
    assert bool(result.findings) is not silent
    assert same is silent
