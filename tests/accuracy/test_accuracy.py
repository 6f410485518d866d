"""Case files, scoring, and the kernels of the published measurements."""

import math
import re

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.accuracy import load_cases
from ascend_sim.accuracy.card import card, load_result, save_result
from ascend_sim.accuracy.cases import CaseFile, Record
from ascend_sim.accuracy.families import folder, list_families, load_family
from ascend_sim.accuracy.measure import TIMES, times
from ascend_sim.accuracy.notes import load_notes
from ascend_sim.accuracy.score import ln_ratio, pair_row, record_row, shift, summary
from ascend_sim.config import list_chips, load_chip
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
        ([1.0, 4.0], [1.0, 1.0], [0.0, math.log(4)]),
        (3.0, [2.0, 4.0], 0.0),
        (None, 1.0, None),
        (1.0, "held", None),
        ([1.0, None], [2.0, 5.0], [-math.log(2), None]),
    ],
)
def test_ln_ratio(simulated, measured, expected):
    found = ln_ratio(simulated, measured)
    if isinstance(expected, list):
        assert found == [None if point is None else pytest.approx(point) for point in expected]
    else:
        assert found == (None if expected is None else pytest.approx(expected))


def test_errors_of_a_sweeps_points_do_not_cancel():
    cases = small(task_us=[10.0, 10.0])
    row = record_row(cases.records[0], {"task_us": [20.0, 5.0]})
    assert row["whole_error"] == pytest.approx(math.log(2))
    assert shift(row["ln_ratio"]["task_us"]) == pytest.approx(0)


def test_a_table_of_rows_is_a_sweep_over_its_rows():
    record = Record.model_validate(
        {
            "id": "f.a",
            "family": "f",
            "shape": "list of [M, K, us]",
            "measured": {"rows": [[1, 2, 8.0], [3, 4, 5.0]]},
        }
    )
    assert record.points() == [[1, 2], [3, 4]]
    assert record_row(record, {"task_us": [8.0, 10.0]})["ln_ratio"] == {
        "task_us": [0.0, pytest.approx(math.log(2))]
    }
    assert record.points("tokens") == [[1, 2], [3, 4]]
    plain = {
        "id": "f.b",
        "family": "f",
        "shape": "[R,7168]",
        "measured": {"table": [[1, 2.0], [8, 4.0]]},
    }
    assert Record.model_validate(plain).figures["task_us"] == [2.0, 4.0]
    named = {"id": "f.b", "family": "f", "measured": {"R": [1, 8], "us": [2.0, 4.0]}}
    assert Record.model_validate(named).figures["task_us"] == [2.0, 4.0]


def test_points_of_a_sweep_are_found_under_their_name_wherever_it_stands():
    made = {"id": "f.a", "family": "f", "shape": {"S1": [1, 2]}}
    assert Record.model_validate(made).points("s1") == [1, 2]
    assert Record.model_validate(made | {"measured": {"S1": [3]}}).points("S1") == [3]
    assert Record.model_validate(made | {"params": {"T": [4]}}).points("T") == [4]
    assert Record.model_validate(made).points("R") is None


def test_simulated_always_names_all_times():
    row = record_row(small().records[0], {"task_us": 1.0})
    assert [key for key, value in row["simulated"].items() if value is None] == list(TIMES)[1:]


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


def test_every_family_of_the_records_has_a_kernel_and_no_other_has():
    assert set(list_families()) == {record.family for record in CASES.records}


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


def campaign():
    """A result of two records and a pair, scored as a campaign scores them."""
    cases = small(task_us=10.0, vec_us=2.0)
    figures = {
        "f.a": {"task_us": 12.0, "vec_us": 1.0, "noise": 3.0, "simulated_part": "half"},
        "f.b": {"task_us": 4.123456789, "aiv_us": [1.0, None]},
    }
    rows = [record_row(record, figures[record.id]) for record in cases.records]
    pairs = [pair_row(cases, cases.pairs[0], figures)]
    return {
        "schema_version": 1, "chips": {"ascend910b1": 7}, "cpu_s": 120.0, "records": rows, "pairs": pairs,
        "summary": summary(rows, pairs),
    }  # fmt: skip


def test_the_card_says_what_was_compared_and_how_far_off_it_is():
    text = card(campaign())
    assert "2 records of 1 families" in text
    assert "ascend910b1 revision 7" in text
    assert "2 minutes of CPU" in text
    assert "| f.a | A | task_us | 10 | 12 | +0.182 | vec -0.69 |" in text
    assert "* `f.a`: half" in text
    assert re.search(r"\| f\.gain \|.*\| 2 \| 2\.91 \| right \|", text)


def test_a_saved_result_gives_the_same_card(tmp_path):
    file = tmp_path / "results.json"
    save_result(campaign(), file)
    loaded = load_result(file)
    assert card(loaded) == card(campaign())
    assert loaded["records"][1]["simulated"]["task_us"] == 4.123
    assert "noise" not in loaded["records"][0]["simulated"]


def test_a_record_that_cannot_be_simulated_is_told_in_the_card():
    result = campaign()
    result["records"][0] |= {"simulated": dict.fromkeys(TIMES), "error": "BoundsError: too far"}
    assert "not simulated: BoundsError: too far" in card(result)


def test_every_family_is_of_one_kind_and_notes_are_about_families():
    kinds = [family for own in load_notes().kinds.values() for family in own]
    assert sorted(kinds) == list_families()
    assert set(load_notes().notes) <= set(kinds)
    assert {note.cause for note in load_notes().notes.values()} == {"kernel", "model", "setup"}


def test_pipes_of_a_mix_kernel_are_those_of_the_core_type_that_profilers_count():
    """Scalar unit and MTE2 of the cube cores; what cores of a type that does not run have is None."""

    def kernel(x):
        tensor = asc.GlobalTensor()
        tensor.set_global_buffer(x)
        if asc.ascend_is_aiv():
            for _ in range(8):
                tile = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 1024)
                asc.data_copy(tile, tensor, 1024)

    x = np.zeros(1024, np.float16)
    mixed = times(sim.launch(kernel, x, kernel_type="MIX_AIC_1_2"))
    assert mixed["mte2_us"] == mixed["aic_mte2_us"] == 0
    assert mixed["aiv_mte2_us"] > 0
    alone = times(sim.launch(kernel, x))
    assert alone["mte2_us"] == alone["aiv_mte2_us"] > 0
    assert [alone[name] for name in ("aic_us", "mac_us", "mte1_us", "fix_us")] == [None] * 4
    cube = times(sim.launch(kernel, x, kernel_type="AIC_ONLY"))
    assert [cube[name] for name in ("aiv_us", "vec_us", "mte3_us")] == [None] * 3


def test_the_kept_campaign_is_about_these_records_and_chips():
    """The card is stale where this fails: `make accuracy` makes it anew."""
    result = load_result(folder() / "results.json")
    assert [row["id"] for row in result["records"]] == [record.id for record in CASES.records]
    assert {row["id"] for row in result["pairs"]} == {pair.id for pair in CASES.pairs}
    assert result["chips"] == {name: load_chip(name).revision for name in result["chips"]}
    assert not [row["id"] for row in result["records"] if "error" in row]
