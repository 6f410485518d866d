"""The Python that pyasc runs in: named by the user, or made once in the user's cache.

pyasc wants Python 3.9 to 3.12 and numpy below 2, so it does not go with the simulator's own environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ascend_sim.errors import ConfigError

PYASC = "pyasc==1.1.1"
"""What is installed: the version whose front end is known to work here."""

VARIABLE = "ASCEND_SIM_PYASC"
"""Environment variable that names a Python with pyasc."""

NEWEST = (3, 12)
OLDEST = (3, 9)
_CHECK = "import asc, sys; print(*sys.version_info[:2])"


def cache_folder() -> Path:
    """Return where the environment is made: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ascend-sim" / PYASC.replace("==", "-")


def find_python(given: str | None) -> Path:
    """Return a Python that has pyasc: the one given, that of the variable, or the one made before.

    Raises `ConfigError` where there is none, with how to get one.
    """
    named = given or os.environ.get(VARIABLE)
    if named:
        return _checked(named, "--python" if given else VARIABLE)
    made = _python_in(cache_folder())
    if (cache_folder() / ".ready").is_file() and made.exists():
        return made
    raise ConfigError(
        "export needs pyasc, in a Python of its own. `ascend-sim export --setup` makes one, once, in "
        f"{cache_folder()}; or name a Python that has {PYASC} with --python PATH or {VARIABLE}"
    )


def make_environment() -> Path:
    """Make the environment in the user's cache, unless it is there, and return its Python.

    Raises `ConfigError` where no fitting Python is found or pip fails, with what pip said.
    """
    folder = cache_folder()
    python = _python_in(folder)
    if (folder / ".ready").is_file() and python.exists():
        return python
    base = _base_python()
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([base, "-m", "venv", str(folder)])
    _run(
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            PYASC,
            "numpy<2",
        ]
    )
    _run([str(python), "-c", _CHECK])
    (folder / ".ready").touch()
    return python


def _python_in(folder: Path) -> Path:
    return folder / "bin" / "python"


def _checked(named: str, said_by: str) -> Path:
    """Return the Python that a user named, or the one of an environment's folder."""
    path = Path(named).expanduser()
    if path.is_dir():
        path = _python_in(path)
    found = shutil.which(str(path))
    if found is None:
        raise ConfigError(f"{said_by} is {named!r}: there is no such Python")
    try:
        result = subprocess.run(
            [found, "-c", _CHECK], check=False, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{said_by} is {named!r}, which does not run: {error}") from None
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ConfigError(
            f"{said_by} is {named!r}, which has no working pyasc ({last}); install it there with "
            f"pip install {PYASC} 'numpy<2', or let `ascend-sim export --setup` make an environment"
        )
    # Not resolved: a virtual environment's Python is a link, and finds its packages by its own place.
    return Path(found).absolute()


def _base_python() -> str:
    """Return a Python that pyasc has a build for: this one, else the newest that is installed."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            return found
    mine = ".".join(map(str, sys.version_info[:2]))
    raise ConfigError(
        f"pyasc has no build for Python {mine}, and no Python 3.{OLDEST[1]} to 3.{NEWEST[1]} is installed; install "
        f"one (python3.12, for example), or name it with --python PATH after pip install {PYASC}"
    )


def _run(command: list[str]) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        said = "\n  ".join((result.stderr or result.stdout).strip().splitlines()[-4:])
        raise ConfigError(f"setting up pyasc failed at `{' '.join(command)}`:\n  {said}")
