"""Random arguments into every instruction: an error with a name, or a run that is right; never anything from inside."""

from __future__ import annotations

import pytest

from ascend_sim.instructions.catalogue import EXAMPLES
from tests.fuzz.instructions import attempts, trouble

EACH = 3
EACH_SLOW = 75
"""134 instructions have examples with a call in them: ten thousand attempts."""


def found(seed: int, each: int, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    count, wrong = 0, []
    for name, example in sorted(EXAMPLES.items()):
        for attempt in attempts(name, example, seed, each):
            count += 1
            said = trouble(attempt)
            if said:
                wrong.append(f"{name}: {said}\n    {attempt.line.strip()}")
        capsys.readouterr()  # what kernels print
    return count, wrong


def test_some(capsys: pytest.CaptureFixture[str]) -> None:
    count, wrong = found(0, EACH, capsys)
    assert not wrong, "\n".join(wrong)
    assert count > 300


@pytest.mark.slow
def test_ten_thousand(capsys: pytest.CaptureFixture[str]) -> None:
    count, wrong = found(1, EACH_SLOW, capsys)
    assert not wrong, "\n".join(wrong)
    assert count > 9_900


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("fixpipe", "asc.fixpipe(z_gm, c, asc.FixpipeParamsV220(16, 32, 32, 16, False), z_gm)"),
        ("set_mm_layout_transform", "asc.set_mm_layout_transform('')"),
        ("sort", "asc.sort(15, a, b, t, 2, True)"),
    ],
)
def test_what_was_found(name: str, line: str) -> None:
    from dataclasses import replace

    from tests.fuzz.instructions import Attempt

    example = EXAMPLES[name]
    body = tuple(line if one.strip() == example.about.strip() else one for one in example.body)
    text = replace(example, body=body).text
    assert line in text
    assert trouble(Attempt(name, line, text, example)) == ""
