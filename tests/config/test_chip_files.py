"""A user's chip file: what `extends` does, and what a mistake is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str, name: str = "mine.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return put


def _message(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_chip(path)
    return str(caught.value).replace(f"{path.parent}/", "")


CLOCK = "clock_mhz: 2000\nsources:\n  clock_mhz: {source: what if, confidence: L}\n"


def test_extends_merges_key_by_key(write: Write) -> None:
    path = write(
        "extends: toy\n"
        "gm: {latency_hbm: 300}\n"
        "vector_costs: {exp: {float16: {startup: 7, slope: 3}}}\n"
        "sources:\n"
        "  gm.latency_hbm: {source: what if, confidence: M}\n"
        "  vector_costs.exp: {source: also what if, confidence: H}\n"
    )
    chip, toy = load_chip(path), load_chip("toy")
    assert chip.gm.latency_hbm == 300
    assert chip.gm.latency_l2_read == toy.gm.latency_l2_read
    assert chip.vector_cost("exp", "float16").slope == 3
    assert chip.vector_cost("exp", "float32") == toy.vector_cost("exp", "float32")
    assert chip.source_of("gm.latency_hbm").source == "what if"
    assert chip.source_of("gm.latency_l2_read").source == "round number for tests"
    assert chip.source_of("vector_costs.exp.any.slope").source == "round number for tests"


def test_a_file_hands_on_neither_its_name_nor_its_description(write: Write) -> None:
    chip = load_chip(write(f"extends: toy\n{CLOCK}", "fast-toy.yaml"))
    assert (chip.name, chip.description, chip.revision, chip.soc) == ("fast-toy", "", 1, "Toy")
    assert load_chip(str(write(f"extends: toy\nname: faster\n{CLOCK}"))).name == "faster"


def test_a_wider_source_in_the_changing_file_replaces_a_narrower_one_below(write: Write) -> None:
    # The base names gm.latency_hbm itself; the new value must not keep that source.
    path = write(
        "extends: ascend910b1\ngm: {latency_hbm: 300}\nsources: {gm: {source: what if, confidence: L}}\n"
    )
    chip = load_chip(path)
    assert chip.source_of("gm.latency_hbm").source == "what if"
    assert chip.source_of("gm.latency_l2_read").confidence == "H"


def test_extends_a_path_and_a_neighbour(write: Write) -> None:
    write(f"extends: toy\n{CLOCK}", "base.yaml")
    assert load_chip(write("extends: ./base.yaml\n", "by-path.yaml")).clock_mhz == 2000
    assert load_chip(write("extends: base\n", "by-name.yaml")).clock_mhz == 2000
    assert load_chip(write("extends: ../base.yaml\n", "inner/up.yaml")).clock_mhz == 2000


def test_a_file_named_like_a_shipped_chip_may_extend_it(write: Write) -> None:
    assert load_chip(write(f"extends: toy\n{CLOCK}", "toy.yaml")).clock_mhz == 2000


def test_an_edited_file_is_read_again(write: Write) -> None:
    base = write(f"extends: toy\n{CLOCK}", "base.yaml")
    top = write("extends: base\n")
    assert load_chip(top).clock_mhz == 2000
    base.write_text(f"extends: toy\n{CLOCK}".replace("2000", "12000"))
    assert load_chip(top).clock_mhz == 12000
    base.unlink()
    assert "extends: no chip 'base'" in _message(top)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"extends: toy\ngm: {{latnecy_hbm: 5}}\n{CLOCK}",
            "mine.yaml:2: gm.latnecy_hbm: unknown key; did you mean 'latency_hbm'?",
        ),
        (
            f"extends: toy\nclok_mhz: 5\n{CLOCK}",
            "mine.yaml:2: clok_mhz: unknown key; did you mean 'clock_mhz'?",
        ),
        (
            "extends: toy\nvector_costs:\n  exp:\n    float16: {statup: 1, slope: 2}\n",
            "mine.yaml:4: vector_costs.exp.float16.statup: unknown key; did you mean 'startup'?",
        ),
        (
            "extends: toy\ncores: {aic: two}\n",
            "mine.yaml:2: cores.aic: expected a whole number, got 'two'",
        ),
        (
            "extends: toy\ncores: {aic: 2.5}\n",
            "mine.yaml:2: cores.aic: expected a whole number, got 2.5",
        ),
        (
            "extends: toy\nclock_mhz: 1e3\n",
            "mine.yaml:2: clock_mhz: expected a number, got '1e3' as text (YAML reads a number without "
            "quotes; an exponent needs a point and a sign: 1.0e+9)",
        ),
        (
            "extends: toy\nclock_mhz: fast\n",
            "mine.yaml:2: clock_mhz: expected a number, got 'fast'",
        ),
        ("extends: toy\nclock_mhz: on\n", "mine.yaml:2: clock_mhz: expected a number, got True"),
        ("extends: toy\nsoc: 910\n", "mine.yaml:2: soc: expected text, got 910"),
        (
            "extends: toy\nclock_mhz: 0\n",
            "mine.yaml:2: clock_mhz: input should be greater than 0, got 0",
        ),
        (
            "extends: toy\ngm:\n  latency_hbm: -1\n",
            "mine.yaml:3: gm.latency_hbm: input should be greater than or equal to 0, got -1",
        ),
        (
            "extends: toy\nclock_mhz: .inf\n",
            "mine.yaml:2: clock_mhz: input should be a finite number, got inf",
        ),
        (
            "extends: toy\ngm: 5\n",
            "mine.yaml:2: gm: expected a section of `key: value` lines, got 5",
        ),
        (
            "extends: toy\nmemories: {UB: {reserved: 196608}}\n",
            "mine.yaml:2: memories.UB: reserved (196608) leaves nothing of bytes (196608)",
        ),
        (
            "extends: toy\ngm: {latency_l2_read: 401}\n",
            "mine.yaml:2: gm: latency_hbm (200) is below latency_l2_read (401): what L2 does not have goes "
            "through it all the same",
        ),
        (
            "extends: toy\nvector_costs: {add: {any: {startup: -2, slope: 1}}}\n",
            "mine.yaml:2: vector_costs.add.any: one repeat would cost no time: startup + slope must be positive",
        ),
        (
            "extends: toy\nvector_costs: {add: {flaot16: {startup: 2, slope: 1}}}\n",
            "mine.yaml:2: vector_costs.add.flaot16: no type 'flaot16'; did you mean 'float16'?",
        ),
        (
            "extends: toy\nvector_costs: {exps: {any: {startup: 2, slope: 1}}}\n",
            "mine.yaml:2: vector_costs.exps: the extended chip has no such instruction; did you mean 'exp'?",
        ),
        (
            "extends: toy\nvector_costs: 5\n",
            "mine.yaml:2: vector_costs: expected a section of `key: value` lines, got 5",
        ),
        (
            "extends: toy\nclock_mhz: 2000\n",
            "mine.yaml:2: clock_mhz = 2000 has no source; say under sources where it comes from: "
            "`clock_mhz: {source: ..., confidence: H|M|L}`, or once for its section",
        ),
        (
            f"extends: toy\n{CLOCK}  clock_mzh: {{source: what if, confidence: L}}\n",
            "mine.yaml:5: sources.clock_mzh: this file has no such number; did you mean 'clock_mhz'?",
        ),
        (
            f"extends: toy\n{CLOCK.replace('L', 'X')}",
            "mine.yaml:4: sources.clock_mhz.confidence: expected 'H', 'M' or 'L', got 'X'",
        ),
        (
            "extends: ascend910b5\n",
            "mine.yaml: extends: no chip 'ascend910b5'; did you mean 'ascend910b4'? (chips: ascend910_93, "
            "ascend910b1, ascend910b2, ascend910b3, ascend910b4, toy; or the path of a .yaml file)",
        ),
        ("extends: other/base.yaml\n", "mine.yaml: extends: no chip file other/base.yaml"),
        (
            "extends: [toy]\n",
            "mine.yaml:1: extends: expected the name or path of a chip, got ['toy']",
        ),
        (
            "extends: mine.yaml\n",
            "mine.yaml:1: extends goes round in a circle: mine.yaml -> mine.yaml",
        ),
        (
            "gm:\n  line: 5\n  line: 6\n",
            "mine.yaml:3: gm.line stands twice, first in line 2",
        ),
        ("gm:\n  7: 5\n", "mine.yaml:2: gm: keys are text, got '7'"),
        ("gm: &a\n  line: *a\n", "mine.yaml:2: gm.line.line… is nested too deep"),
        ("- toy\n", "mine.yaml:1: expected `key: value` lines, got list"),
        ("", "mine.yaml: soc: is missing, and neither this file nor one that it extends gives it"),
    ],
)
def test_messages(write: Write, text: str, message: str) -> None:
    assert _message(write(text)).splitlines()[0] == message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gm:\n  line: 5\n bad: 3\n", "3:2"),
        ("cores: {aic: 2\n", "2:1"),
        ("a: 1\n--- \nb: 2\n", "2:1"),
    ],
)
def test_what_is_no_yaml_names_line_and_column(write: Write, text: str, place: str) -> None:
    assert _message(write(text)).startswith(f"mine.yaml:{place}: no valid YAML: ")


def test_yaml_anchors_and_merge_keys(write: Write) -> None:
    text = (
        "extends: toy\n"
        "vector_costs: {exp: {float16: &a {startup: 7, slope: 3}, float32: {<<: *a, slope: 2}}}\n"
        "sources: {vector_costs: {source: what if, confidence: L}}\n"
    )
    cost = load_chip(write(text)).vector_cost("exp", "float32")
    assert (cost.startup, cost.slope) == (7, 2)


def test_all_mistakes_are_told_at_once(write: Write) -> None:
    text = "extends: toy\nclock_mhz: fast\ngm: {lien: 5}\n"
    assert len(_message(write(text)).splitlines()) == 2


def test_a_mistake_in_the_base_names_the_base(write: Write) -> None:
    write("extends: toy\ngm:\n  lien: 5\n", "base.yaml")
    assert (
        _message(write("extends: base\n"))
        == "base.yaml:3: gm.lien: unknown key; did you mean 'line'?"
    )


def test_a_circle_of_two_names_both(write: Write) -> None:
    write("extends: mine\n", "other.yaml")
    message = _message(write("extends: other\n"))
    assert (
        message
        == "other.yaml:1: extends goes round in a circle: mine.yaml -> other.yaml -> mine.yaml"
    )


def test_what_cannot_be_read(write: Write, tmp_path: Path) -> None:
    path = write("")
    path.write_bytes(b"soc: \xff\n")
    assert _message(path).startswith("mine.yaml: cannot be read: ")
    missing = tmp_path / "none.yaml"
    with pytest.raises(ConfigError, match=re.escape(f"no chip file {missing}")):
        load_chip(missing)


def test_an_unknown_chip_names_the_nearest_and_all_others() -> None:
    with pytest.raises(ConfigError) as caught:
        load_chip("asend910b2")
    assert str(caught.value) == (
        "no chip 'asend910b2'; did you mean 'ascend910b2'? (chips: ascend910_93, ascend910b1, ascend910b2, "
        "ascend910b3, ascend910b4, toy; or the path of a .yaml file)"
    )
