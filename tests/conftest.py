from __future__ import annotations

from pathlib import Path

import pytest

from ascend_sim.config import Chip, load_chip


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout that the tests stand in."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def toy() -> Chip:
    """The chip of round numbers."""
    return load_chip("toy")
