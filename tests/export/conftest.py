from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascend_sim.errors import ConfigError
from ascend_sim.export.environment import VARIABLE, find_python
from tests.cli.conftest import command

__all__ = ["command"]


@pytest.fixture(scope="session")
def pyasc() -> Path:
    """The Python with pyasc: named by the environment variable, or made before by `export --setup`."""
    try:
        return find_python(os.environ.get(VARIABLE))
    except ConfigError as error:
        pytest.skip(f"no pyasc: {error}")
