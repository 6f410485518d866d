"""Arrays from `.npz` files."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ascend_sim.errors import ConfigError


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arrays of a `.npz` file by their names. Raises `ConfigError` for a file that cannot be read."""
    try:
        with zipfile.ZipFile(path):  # numpy would take a .npy file and a pickle as well
            pass
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ConfigError(f"no such file: {path}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path}: cannot be read as a .npz file ({error}); make one with numpy.savez"
        ) from error
