"""Case files, scoring, and the kernels of the published measurements."""

import math

import pytest

from ascend_sim.accuracy import load_cases
from ascend_sim.accuracy.cases import CaseFile
from ascend_sim.accuracy.families import folder, list_families, load_family
from ascend_sim.accuracy.score import ln_ratio, pair_row, record_row, summary
from ascend_sim.config import list_chips
from ascend_sim.errors import ConfigError

CASES = load_cases(folder() / "cases.yaml")


def test_every_record_names_a_chip_file():
    assert {record.config for record in CASES.records} <= set(list_chips())


def test_ids_are_unique_and_pairs_name_records():
    names = [record.id for record in CASES.records]
    assert len(set(names)) == len(names)
    assert {name for pair in CASES.pairs for name in (pair.before, pair.after)} <= set(names)


def test_held_records_have_no_figures():
    assert all(not record.measured for record in CASES.records if record.split == "held")


@pytest.mark.parametrize(
    ("simulated", "measured", "expected"),
    [
        (2.0, 1.0, math.log(2)),
        ([1.0, 4.0], [1.0, 1.0], math.log(4) / 2),
        (3.0, [2.0, 4.0], 0.0),
        (None, 1.0, None),
        (1.0, "held", None),
        ([1.0, None], [2.0, 5.0], -math.log(2)),
    ],
)
def test_ln_ratio(simulated, measured, expected):
    assert ln_ratio(simulated, measured) == (None if expected is None else pytest.approx(expected))


def small(**measured):
    return CaseFile.model_validate(
        {
            "records": [
                {"id": "f.a", "family": "f", "grade": "A", "measured": measured},
                {"id": "f.b", "family": "f", "grade": "B", "measured": {"task_us": 5.0}},
            ],
            "pairs": [{"id": "f.gain", "before": "f.a", "after": "f.b", "gain": 2.0}],
        }
    )


def test_a_pair_has_the_worse_grade_and_a_sign():
    cases = small(task_us=10.0)
    row = pair_row(cases, cases.pairs[0], {"f.a": {"task_us": 8.0}, "f.b": {"task_us": 9.0}})
    assert row["grade"] == "B"
    assert row["simulated"] == pytest.approx(8 / 9)
    assert row["sign"] is False
    assert row["ln_ratio"] == pytest.approx(math.log(8 / 9 / 2))


def test_the_summary_counts_whole_times_and_pipes_apart():
    cases = small(task_us=10.0, vec_us=1.0, mte2_us=2.0)
    row = record_row(cases.records[0], {"task_us": 11.0, "vec_us": 1.0, "mte2_us": 4.0})
    grades = summary([row], [])
    assert grades["A"]["whole"]["median"] == pytest.approx(math.log(1.1))
    assert grades["A"]["pipes"]["median"] == pytest.approx(math.log(2) / 2)


def test_an_unknown_family_is_told_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'add_hp'"):
        load_family("ad_hp")


def test_families_belong_to_records():
    assert set(list_families()) <= {record.family for record in CASES.records}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("records: {}", "a list `records`"),
        ("records: [{id: x}]", r"records\.0\.family"),
        ("records: [", "not valid YAML"),
    ],
)
def test_a_bad_case_file_is_told_with_its_place(tmp_path, text, message):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_cases(file)
