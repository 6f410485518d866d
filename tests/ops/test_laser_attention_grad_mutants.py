"""Every synchronisation of laser_attention_grad on which something depends: taken out or changed, it gives a finding.

What is redundant is listed here with the reason; without it only the time changes, and the numbers stay.
"""

from __future__ import annotations

import re

import pytest

from ops.laser_attention_grad.sizes import Sizes
from tests.ops.laser_mutants import (
    Outcome,
    Site,
    Subject,
    flag_groups,
    label,
    other_id,
    without,
    without_cross_flag,
    without_flag,
    without_unit_flag,
)
from tests.ops.test_laser_attention_grad_run import Case

SUBJECTS = {
    "band": (Sizes(1, 2, 2, 512, 512, 128), True, 0, 1),
    "192": (Sizes(1, 2, 1, 512, 512, 192), True, 0, 1),
    "window": (Sizes(1, 1, 1, 1024, 1024, 128), True, 2, 1),
    "SBH": (Sizes(1, 1, 1, 256, 256, 192, "SBH"), True, 0, 2),
}

QUICK_FIRST = [
    "band",
    *(pytest.param(one, marks=pytest.mark.slow) for one in ("192", "window", "SBH")),
]

NOTHING_READS = "the next instruction of V works on other bytes, and a barrier follows before anything reads these"
FLAG_FOLLOWS = "what reads it is on another pipe, and its flag waits for all that V has done"
REDUNDANT_BARRIERS = {
    "vector_core.py _row_values_of_half: _cast(product, self.first16[n], NO_ROUNDING, TO_FLOAT32)": NOTHING_READS,
    "vector_core.py _row_values: _spread(self.inner_spread, self.inner_whole)": NOTHING_READS,
    "vector_core.py _row_values: _spread(self.log_sum_spread, self.log_sum_whole)": NOTHING_READS,
    "vector_core.py _weights: _cast(self.first16[n], scores, RINT, TO_BFLOAT16)": FLAG_FOLLOWS,
    "vector_core.py _score_grads: _cast(self.second16[n], gradient, RINT, TO_BFLOAT16)": FLAG_FOLLOWS,
}

LATER_FLAG = "the other flag of the same pipe is raised later and waited for at the same place"
REDUNDANT_FLAGS = {
    ("vector_core.py", "V_MTE2", 1): LATER_FLAG,
    ("cube_band.py", "MTE2_MTE1", 2): LATER_FLAG + ": dS or Q is followed by K",
    ("cube_band.py", "MTE2_MTE1", 3): LATER_FLAG + ": dS or Q is followed by K",
    ("cube_band.py", "MTE1_M", 2): LATER_FLAG + ": L0B is followed by L0A",
    ("cube_band.py", "MTE1_M", 3): LATER_FLAG + ": L0B is followed by L0A",
    ("cube_band.py", "M_MTE1", 4): "raised at the start, taken back at the end, used by nobody",
    ("cube_band.py", "M_MTE1", 5): "raised at the start, taken back at the end, used by nobody",
    (
        "cube_window.py",
        "MTE1_MTE2",
        0,
    ): "a segment's Q comes after dS and K of the one before, whose flags say more",
    ("cube_window.py", "M_MTE1", 1): "raised with those of the other places after the same Mmad",
    ("cube_window.py", "MTE1_M", 1): LATER_FLAG + ": L0A is followed by L0B",
    ("cube_window.py", "MTE1_M", 2): LATER_FLAG
    + ": L0A or L0B of a segment is followed by that of a block",
}
"""Flags that can go altogether, sets and waits: what they say another flag says too."""

REDUNDANT_CROSS_FLAGS = {0: "the barrier of all cores, which follows at once, waits for the same"}


def subject(name: str) -> Subject:
    sizes, mask, window, cores = SUBJECTS[name]
    return Subject(sizes, mask=mask, window=window, cores=cores)


def sites_of(found: Subject, *names: str) -> list[Site]:
    return [site for site in found.sites() if site[0] in names]


WAITS = re.compile(
    r"  core\d+\.ai[cv]\d?\.\w+ +(\w+ )?waits at .+\.py:\d+ in \w+( \(from \S* ?\d+\))? for "
    r"(\w+ id \d|cross-core flag \d+|sync_all|L0C\[\d+:\d+\] to become)"
)


def check_that_it_names_who_waits(outcome: Outcome) -> None:
    """Each pipe and core of a deadlock with its line and the flag or the cores that it waits for."""
    (message,) = (one for one in outcome.messages if "deadlock at cycle" in one)
    waiting = [line for line in message.splitlines() if " waits at " in line]
    assert waiting, message
    for line in waiting:
        assert WAITS.match(line), line


def check_single_calls(found: Subject, names: tuple[str, ...]) -> None:
    """Leave out each call by itself."""
    silent = {}
    for site in sites_of(found, *names):
        outcome = found.run(without(site))
        if not outcome.kinds:
            silent[label(site)] = site
        if "DEADLOCK" in outcome.kinds:
            check_that_it_names_who_waits(outcome)
    assert set(silent) <= set(REDUNDANT_BARRIERS)
    if "pipe_barrier" in names:
        known = {one for one in REDUNDANT_BARRIERS if one.startswith("vector_core")}
        assert set(silent) == known


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_set_or_a_wait_that_is_missing_is_found(name: str) -> None:
    check_single_calls(subject(name), ("set_flag", "wait_flag"))


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_missing_call_between_cores_is_found(name: str) -> None:
    found = subject(name)
    check_single_calls(found, ("cross_core_set_flag", "cross_core_wait_flag", "sync_all"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_missing_barrier_is_found(name: str) -> None:
    check_single_calls(subject(name), ("pipe_barrier",))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["band", "192", "window"])  # SBH runs the files of 192
def test_a_flag_without_its_sets_and_waits_is_a_race(name: str) -> None:
    found = subject(name)
    silent = set()
    for group, sites in flag_groups(found.sites()).items():
        outcome = found.run(without_flag(group, sites))
        assert outcome.kinds <= {"RACE"}
        if not outcome.kinds:
            silent.add(group)
    assert silent <= set(REDUNDANT_FLAGS)


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_flag_between_cores_is_a_race_or_a_deadlock(name: str) -> None:
    found = subject(name)
    ids = {args[0] for site, calls in found.sites().items() if "cross" in site[0] for args in calls}
    for flag_id in ids:
        outcome = found.run(without_cross_flag(flag_id))
        assert bool(outcome.kinds & {"RACE", "DEADLOCK"}) != (flag_id in REDUNDANT_CROSS_FLAGS)


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_missing_unit_flag_is_found(name: str) -> None:
    found = subject(name)
    for site in sites_of(found, "mmad", "fixpipe"):
        outcome = found.run(without_unit_flag(site))
        assert outcome.kinds & {"RACE", "DEADLOCK", "FLAG_BALANCE"}, label(site)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_swapped_ids_are_found_or_only_wait_for_more(name: str) -> None:
    """A set or wait of the other place: a finding, or what is waited for comes after what was meant, in one pipe.

    The latter is checked on the numbers: they stay the same, bit for bit.
    """
    found = subject(name)
    silent = [
        site
        for site in sites_of(found, "set_flag", "wait_flag")
        if not found.run(other_id(site)).kinds
    ]
    assert silent
    sizes, mask, window, cores = SUBJECTS[name]
    case = Case(sizes, mask=mask, pre_tokens=window * 128)
    wanted = [output.tobytes() for output in numbers(case, cores, None)]
    for site in silent:
        given = [output.tobytes() for output in numbers(case, cores, other_id(site))]
        assert given == wanted, label(site)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["band", "192", "window"])
def test_what_is_redundant_changes_no_number(name: str) -> None:
    found = subject(name)
    sizes, mask, window, cores = SUBJECTS[name]
    case = Case(sizes, mask=mask, pre_tokens=window * 128)
    wanted = [output.tobytes() for output in numbers(case, cores, None)]
    groups = flag_groups(found.sites())
    mutants = [without_flag(group, groups[group]) for group in REDUNDANT_FLAGS if group in groups]
    mutants += [
        without(site)
        for site in sites_of(found, "pipe_barrier")
        if label(site) in REDUNDANT_BARRIERS
    ]
    silent = [mutant for mutant in mutants if not found.run(mutant).kinds]
    for mutant in silent:
        assert [output.tobytes() for output in numbers(case, cores, mutant)] == wanted


def numbers(case: Case, cores: int, change: object) -> list[object]:
    """Return the outputs of a run with numbers, of a mutant where `change` is one."""
    from tests.ops.laser_mutants import watching

    for output in case.outputs:
        output.fill(0)
    if change is None:
        case.run(checks="off", cores=cores)
    else:
        with watching(change):
            case.run(checks="off", cores=cores)
    return [output.copy() for output in case.outputs[:3]]


def test_some_flags_of_the_band() -> None:
    """One flag of each event of the cube and of the vector core, without its sets and waits."""
    found = subject("band")
    groups = flag_groups(found.sites())
    for group in (
        ("cube_band.py", "MTE1_MTE2", 5), ("cube_band.py", "MTE2_MTE1", 1), ("cube_band.py", "M_MTE1", 2),
        ("cube_band.py", "MTE1_M", 0), ("vector_core.py", "V_MTE2", 0), ("vector_core.py", "MTE2_V", 1),
        ("vector_core.py", "V_MTE3", 1), ("vector_core.py", "MTE3_MTE2", 0),
    ):  # fmt: skip
        assert found.run(without_flag(group, groups[group])).kinds == {"RACE"}


def test_a_deadlock_names_who_waits_for_what() -> None:
    """The cube never says that S and dP are there: both vector cores wait on flag 2, the cube on flag 3."""
    found = subject("band")
    (site,) = (
        site
        for site in sites_of(found, "cross_core_set_flag")
        if label(site).startswith("cube_core.py")
    )
    outcome = found.run(without(site))
    assert outcome.kinds == {"DEADLOCK"}
    (message,) = outcome.messages
    for part in (
        "core0.aiv0.S", "core0.aiv1", "core0.aic.S", "cross-core flag 2", "cross-core flag 3",
    ):  # fmt: skip
        assert part in message
