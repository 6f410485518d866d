"""Whatever words a command gets, it answers with an exit code and a message, never with a traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ascend_sim.config import list_chips
from ascend_sim.export.environment import VARIABLE
from ascend_sim.instructions.catalogue import names
from ascend_sim.instructions.names import ascendc_name
from tests.cli.conftest import Result

ODD = st.sampled_from(
    ["", " ", "-", "--", "---", "-x", "--help=1", "--json=1", "--chip", "--chip=", "..", "/", "/dev/null", ".", "*",
     "[bold]", "{0}", "%s", "\\", "é", "加", "\u202e", "a" * 300, "1", "-1", "1e9", "None", "~", "$HOME", "\x7f"]
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
NAMES = st.sampled_from([*names()[::5], *map(ascendc_name, names()[::7])])
CHIPS = st.sampled_from([*list_chips(), "toi", "ascend910b", "toy.yaml", "/dev/null"])
WORDS = st.one_of(ODD, TEXT, NAMES, CHIPS)

quick = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
Command = Callable[..., Result]


def answers(command: Command, *words: str) -> None:
    """Run a command; an exception other than the exit would fail right here."""
    result = command(*words)
    assert result.code in (0, 1)
    assert "Traceback" not in result.err + result.out
    if result.code:
        assert result.err.strip()


@quick
@given(st.lists(WORDS, max_size=3), st.lists(st.sampled_from(["--json", "--chip"]), max_size=2))
@example(["add"], ["--chip"])
@example(["add", "--chip", "toy"], ["--json"])
def test_instructions(command: Command, words: list[str], options: list[str]) -> None:
    answers(command, "instructions", *words, *options)


@quick
@given(st.lists(WORDS, max_size=2))
def test_chips(command: Command, words: list[str]) -> None:
    answers(command, "chips", *words)


@quick
@given(
    st.lists(WORDS, max_size=3),
    st.lists(
        st.sampled_from(["--out", "--kernel", "--python", "--set", "--chip", "--seq", "--"]),
        max_size=2,
    ),
    st.lists(WORDS, max_size=1),
)
def test_export(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    words: list[str],
    options: list[str],
    last: list[str],
) -> None:
    monkeypatch.delenv(
        VARIABLE, raising=False
    )  # without pyasc nothing is translated, which would take long
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "no-cache"))
    answers(command, "export", *words, *options, *last)


@quick
@given(st.lists(WORDS, max_size=2))
def test_validate_and_ops(command: Command, words: list[str]) -> None:
    answers(command, "validate", *words)
    answers(command, "ops", *words)
