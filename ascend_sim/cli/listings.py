"""Lists: chips and their numbers, operators and their options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ascend_sim.config import Chip, list_chips, load_chip
from ascend_sim.instructions.prices import Price, leaves

_NOT_NUMBERS = ("name", "soc", "description", "revision", "sources")


def show_chips() -> int:
    """Print a line for each chip that comes with the simulator."""
    rows = table("Chip", "SoC", "MHz", "AIC", "AIV", "UB", "L2", "HBM", right=range(2, 8))
    for name in list_chips():
        chip = load_chip(name)
        rows.add_row(
            name, chip.soc, f"{chip.clock_mhz:g}", str(chip.cores.aic), str(chip.cores.aiv),
            f"{chip.memories.UB.bytes // 1024} KiB", f"{chip.l2.bytes // 1024**2} MiB",
            f"{chip.hbm.gbps:g} GB/s",
        )  # fmt: skip
    Console(markup=False, emoji=False).print(rows)
    return 0


def show_chip(name: str) -> int:
    """Print every number of a chip, where it comes from, and how far to trust it."""
    chip = load_chip(name)
    say(f"{chip.name} ({chip.soc}), revision {chip.revision}. {chip.description}")
    rows = table("Key", "Value", "Trust", "Source")
    for price in _numbers(chip):
        rows.add_row(price.key, price.value, price.confidence, price.source)
    Console(markup=False, emoji=False).print(rows)
    say(
        "Trust: H high, M medium, L low; a range says what the value may be, where sources conflict"
    )
    return 0


def validate_chip(file: Path) -> int:
    """Load a chip file and say so; a wrong one raises `ConfigError` with everything that is wrong."""
    # A bare name without a suffix would be looked up among the shipped chips: here it is a file.
    chip = load_chip(file if file.suffix in (".yaml", ".yml") else Path.cwd() / file)
    trust = Counter(price.confidence for price in _numbers(chip))
    words = {"H": "high", "M": "medium", "L": "low"}
    parts = ", ".join(f"{trust[letter]} {word}" for letter, word in words.items() if trust[letter])
    say(f"{file}: a valid chip, {chip.name} ({chip.soc}); trust in its numbers: {parts}")
    return 0


def _numbers(chip: Chip) -> Iterator[Price]:
    """Yield every number with its dotted key path and its source."""
    for section, value in chip.model_dump().items():
        if section not in _NOT_NUMBERS:
            yield from leaves(chip, section, value)


def show_operators() -> int:
    """Print each operator and the names of its options."""
    from ops import list_operators

    for spec in list_operators():
        say(f"{spec.name}: {spec.summary}")
        say(f"  options {', '.join(f'--{option.name}' for option in spec.options)}")
    return 0


def show_operator(name: str) -> int:
    """Print an operator's tensors, options and constants."""
    from ops import find_operator

    spec = find_operator(name)
    say(f"{spec.name}: {spec.summary}")
    say(f"Inputs: {', '.join(spec.inputs)}. Outputs: {', '.join(spec.outputs)}.")
    say(f"Default data: {spec.default_data}.")
    rows = table("Option", "Default", "Meaning")
    for option in spec.options:
        rows.add_row(f"--{option.name} {option.metavar}", option.default, option.meaning)
    for constant in spec.constants:
        rows.add_row(f"--set {constant.name}=N", str(constant.default), constant.meaning)
    Console(markup=False, emoji=False).print(rows)
    return 0


def say(text: str) -> None:
    """Print a line as it is."""
    Console(markup=False, emoji=False).print(text, highlight=False)


def table(*columns: str, right: Any = ()) -> Table:
    """Return an empty table; `right` are the columns that hold numbers."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for position, column in enumerate(columns):
        last = position == len(columns) - 1
        made.add_column(
            column,
            justify="right" if position in right else "left",
            no_wrap=not last,
            overflow="fold",
        )
    return made
