"""The platform that tiling asks: a chip file under the vendor's interface."""

from __future__ import annotations

from ascend_sim.config import Chip, load_chip
from ascend_sim.lang.device import chip_in_use


class PlatformAscendC:
    """What the host knows of one chip. `chip` is its model (an addition to pyasc)."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip

    def __repr__(self) -> str:
        return f"<PlatformAscendC {self.chip.soc}>"


class PlatformAscendCManager:
    """Hands out platforms."""

    @staticmethod
    def get_instance(soc_version: str | None = None) -> PlatformAscendC:
        """Return the platform of a chip by its name (`"Ascend910B1"`), or the one that launches use.

        Raises ConfigError for a chip that there is not.
        """
        if soc_version is None:
            return get_ascendc_platform()
        return PlatformAscendC(load_chip(soc_version))


def get_ascendc_platform() -> PlatformAscendC:
    """Return the platform of the chip that launches use: the command line's, the program's, else an Ascend910B1."""
    return PlatformAscendC(chip_in_use())
