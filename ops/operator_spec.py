"""How an operator's folder presents itself to programs: its options, constants and a way to run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ops.context import Context
from ops.machine import TilingConstant
from ops.operation import Operation

if TYPE_CHECKING:
    from ascend_sim import Run
    from ascend_sim.config import Chip


class Scale(Protocol):
    """The pieces that a run consists of, and runs of fewer pieces."""

    unit: str

    @property
    def total(self) -> int:
        """All pieces."""
        ...

    def enough(self, chip: Chip) -> int:
        """Return after how many pieces nothing changes any more."""
        ...

    def size(self, number: int) -> int:
        """Return the pieces of the part that is nearest to `number`."""
        ...

    def part(self, number: int) -> dict[str, Any]:
        """Return the options of that part, as `read_options` returns them."""
        ...


RunOperator = Callable[[dict[str, Any], Context, int, str | os.PathLike[str] | None], "Run"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line, `--name METAVAR`. `read` turns text, or the value itself, into a value."""

    name: str
    metavar: str
    default: str
    meaning: str
    read: Callable[[str, Any], Any]

    @property
    def key(self) -> str:
        """The option's name as a key: `max_seq` for `--max-seq`."""
        return self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator, by the name of its folder."""

    name: str
    operation: type[Operation]
    summary: str
    options: tuple[Option, ...]
    constants: tuple[TilingConstant, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    default_data: str
    start: RunOperator
    scale: Callable[[Mapping[str, Any]], Scale] | None = None
    """Parts of a run, to estimate large shapes from; None where an operator has none."""

    def run(
        self,
        options: Mapping[str, Any] | None = None,
        context: Context | None = None,
        seed: int = 0,
        input_file: str | os.PathLike[str] | None = None,
    ) -> Run:
        """Run the operator on default data, or on the tensors of a `.npz` file.

        `options` has the options' names (with - or _) and values, as text or as Python values; one that is
        None counts as not given. Raises `ConfigError` for an unknown option or a value that cannot be read,
        and what the operation's stages raise.
        """
        return self.start(self.read_options(options or {}), context or Context(), seed, input_file)

    def read_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each option that is given, by key."""
        known = {option.key: option for option in self.options}
        values: dict[str, Any] = {}
        for name, value in given.items():
            key = name.lstrip("-").replace("-", "_")
            if key not in known:
                hint = nearest(key.replace("_", "-"), [option.name for option in self.options])
                options = ", ".join(f"--{option.name}" for option in self.options)
                raise ConfigError(f"{self.name} has no option {name!r}{hint} (it has: {options})")
            if value is not None:
                values[key] = known[key].read(f"--{known[key].name}", value)
        return values


def read_positive(name: str, value: Any) -> int:
    """Read an integer above 0. Raises `ConfigError`."""
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ConfigError(f"{name} is {value!r}; it must be an integer above 0")
    return number


def read_positive_list(name: str, value: Any) -> tuple[int, ...]:
    """Read integers above 0, separated by commas or as a sequence. Raises `ConfigError`."""
    if isinstance(value, int):
        value = [value]
    parts = value.split(",") if isinstance(value, str) else list(value)
    return tuple(read_positive(f"entry {i + 1} of {name}", part) for i, part in enumerate(parts))
