"""The command `instructions`: what there is, and all about one."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError
from ascend_sim.instructions.catalogue import Entry, entry, names
from ascend_sim.instructions.constraints import Constraint, constraints
from ascend_sim.instructions.names import NEWER, ascendc_name
from ascend_sim.instructions.prices import Price, prices

WIDTH = 100
MANY = 8
"""Characters of a pipe's name; what is longer names several."""


def show_instructions(*, as_json: bool) -> int:
    """Print a line for each instruction."""
    entries = [entry(name) for name in names()]
    if as_json:
        print(json.dumps([_short(one) for one in entries], indent=2))
        return 0
    for one in entries:
        where = one.pipe if len(one.pipe) < MANY else "several"
        says = one.reason or " ".join(one.meaning.partition("\n\n")[0].split())
        where = where if one.status == "here" else one.status
        for line in _wrapped(f"{one.name:<31} {where:<8} {says}", 41):
            print(line)
    print("\nAll about one: ascend-sim instructions NAME")
    return 0


def show_instruction(name: str, chip_name: str, *, as_json: bool) -> int:
    """Print meaning, pipe, operands, forms, constraints, price and an example of one instruction.

    `name` is pyasc's or AscendC's. Raises `ConfigError` for an unknown one, with the nearest.
    """
    one = entry(_known(name))
    chip = load_chip(chip_name)
    rules = constraints(one.name, one.example) if one.example is not None else []
    costs = prices(one.name, chip) if one.status == "here" else []
    if as_json:
        print(json.dumps(_whole(one, chip.name, rules, costs), indent=2))
        return 0
    for line in _page(one, chip.name, rules, costs):
        print(line)
    return 0


def _known(name: str) -> str:
    known = names()
    spellings = {one: one for one in known}
    for one in known:
        spellings.setdefault(ascendc_name(one), one)
        spellings.setdefault(NEWER.get(one, one), one)
    lower = {spelling.lower(): one for spelling, one in spellings.items()}
    bare = name.removeprefix("asc.")
    found = spellings.get(bare, lower.get(bare.lower()))
    if found is None:
        raise ConfigError(
            f"no instruction {name!r}{nearest(name, spellings)} (`ascend-sim instructions` lists them)"
        )
    return found


def _page(one: Entry, chip: str, rules: list[Constraint], costs: list[Price]) -> Iterator[str]:
    newer = f", in newer documents {one.newer}" if one.newer else ""
    yield f"{one.name}: AscendC {one.ascendc}{newer}"
    yield ""
    if one.status != "here":
        yield from _wrapped(f"{one.status[0].upper()}{one.status[1:]}: {one.reason}.")
        return
    for paragraph in one.meaning.split("\n\n"):
        yield from _wrapped(" ".join(paragraph.split()))
    yield ""
    yield from _wrapped(f"Pipe      {one.pipe}", 10)
    yield from _wrapped(f"Call      {one.signature}", 10)
    for number, form in enumerate(one.forms):
        yield from _wrapped(f"{'' if number else 'Forms':<10}{form}", 10)
    for number, types in enumerate(one.types):
        yield from _wrapped(f"{'' if number else 'Types':<10}{types}", 10)
    yield ""
    yield f"Price on {chip}, in cycles (key, value, trust, source)"
    if not costs:
        yield "  no time of its own"
    for price in costs:
        yield from _wrapped(f"  {price.key}  {price.value}  {price.confidence}  {price.source}", 6)
    if rules:
        yield ""
        yield "What it refuses, in the example below"
        for rule in rules:
            yield from _wrapped(f"  {rule.kind} {rule.code}: {rule.message}", 6)
    if one.example is not None:
        yield ""
        yield "Example"
        yield ""
        yield from textwrap.indent(one.example.text, "    ").splitlines()


def _wrapped(text: str, hanging: int = 0) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * hanging, break_long_words=False, break_on_hyphens=False
    )


def _short(one: Entry) -> dict[str, Any]:
    about = asdict(one)
    del about["example"], about["forms"], about["types"], about["signature"]
    return about


def _whole(one: Entry, chip: str, rules: list[Constraint], costs: list[Price]) -> dict[str, Any]:
    return {
        **asdict(one),
        "example": one.example.text if one.example else "",
        "constraints": [asdict(rule) for rule in rules],
        "chip": chip,
        "price": [asdict(price) for price in costs],
    }
