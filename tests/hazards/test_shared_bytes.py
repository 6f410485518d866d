"""Tensors at fixed addresses that share bytes: found where both are in use, silent where one is done with."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_sim import asc
from tests.machine.kit import ALL, V, kinds, line_of, local, toy_run

F16, F32, I32 = asc.float16, asc.float32, asc.int32


def fill(*tensors: asc.LocalTensor) -> None:
    for tensor in tensors:
        asc.duplicate(tensor, 1, tensor.get_size())
    asc.pipe_barrier(ALL)


def then(*calls: Any) -> None:
    """Issue vector calls one after the other, with barriers between."""
    for call, *arguments in calls:
        call(*arguments)
        asc.pipe_barrier(V)


@pytest.mark.parametrize("shift", [128, 256])
def test_the_second_tensor_begins_within_the_first(shift: int) -> None:
    """Bytes 128 to 256 are both tensors'; one byte further none is."""

    def kernel() -> None:
        first, second, out = local(0, 64), local(shift, 64), local(4096, 64)
        fill(first)
        then(
            (asc.adds, out, first, 1.0, 64),
            (asc.duplicate, second, 2.0, 64),
        )
        asc.adds(out, first, 1.0, 64)  # again

    run = toy_run(kernel)
    if shift == 256:
        assert run.findings == []
        return
    (finding,) = run.findings
    assert (finding.kind, finding.code) == ("ALIAS", "live-tensors-overlap")
    assert finding.bytes == (128, 256)
    assert finding.line == line_of(kernel, "# again")
    assert "UB[0:256] (first)" in finding.message
    assert "UB[128:384] (second)" in finding.message


def stages_follow_each_other() -> None:
    """The second stage's tensor takes the place of the first stage's, which is written anew before it is read."""
    a, b, out = local(0, 64), local(128, 64, F16), local(4096, 64)
    half = local(8192, 64, F16)
    for _ in range(3):
        fill(a)
        then((asc.adds, out, a, 1.0, 64), (asc.duplicate, b, 2.0, 64), (asc.adds, half, b, 1.0, 64))


def a_whole_and_its_parts() -> None:
    """A buffer is written and read as a whole, and in parts that have tensors of their own."""
    whole, parts, out = local(0, 128), [local(0, 64), local(256, 64)], local(4096, 128)
    fill(whole)
    then(
        (asc.adds, out, whole, 1.0, 128),
        (asc.duplicate, parts[0], 2.0, 64),
        (asc.duplicate, parts[1], 3.0, 64),
        (asc.adds, out, whole, 1.0, 128),
    )


def bits_of_a_number() -> None:
    """The same bytes as numbers and as bits, changed in place."""
    numbers, bits, out = local(0, 64), local(0, 64, I32), local(4096, 64)
    fill(numbers)
    then(
        (asc.adds, out, numbers, 1.0, 64),
        (asc.shift_left, bits, bits, 1, 64),
        (asc.adds, out, numbers, 1.0, 64),
    )


def filled_before_it_is_used() -> None:
    """What is overwritten has never been read: an initial value."""
    numbers, bits, out = local(0, 64), local(0, 64, I32), local(4096, 64)
    source = local(8192, 64)
    fill(numbers, source)
    then(
        (asc.cast, bits, source, asc.RoundMode.CAST_RINT, 64),
        (asc.adds, out, numbers, 1.0, 64),
    )


@pytest.mark.parametrize(
    "kernel",
    [stages_follow_each_other, a_whole_and_its_parts, bits_of_a_number, filled_before_it_is_used],
)
def test_sharing_bytes_is_no_mistake_by_itself(kernel: Any) -> None:
    assert kinds(toy_run(kernel)) == []
