"""SoC names: which of them are of the 910B family, and which chip file stands for one."""

from __future__ import annotations

from ascend_sim.chip_file import nearest
from ascend_sim.config import list_chips
from ascend_sim.errors import ConfigError

ANY_OF_FAMILY = ("", "Ascend910B")
"""What the library's test tables write for "any chip of the 910B family"."""

DEFAULT_CHIP = "ascend910b1"


def is_910b_family(soc: str) -> bool:
    """Return whether the library takes `soc` for a 910B: `Ascend910B1` and so on, or an A3 die."""
    return soc in ANY_OF_FAMILY or "Ascend910B" in soc or "Ascend910_93" in soc


def chip_of(soc: str) -> str:
    """Return the name of the chip file for `soc`; variants such as `Ascend910B4-1` share their base's.

    Raises `ConfigError` where there is none.
    """
    if soc in ANY_OF_FAMILY:
        return DEFAULT_CHIP
    chips = list_chips()
    matches = [chip for chip in chips if soc.lower().startswith(chip)]
    if not matches:
        hint = nearest(soc.lower(), chips)
        raise ConfigError(
            f"no chip file for SoC {soc!r}{hint} (give Context(chip=...), one of {', '.join(chips)})"
        )
    return max(matches, key=len)
