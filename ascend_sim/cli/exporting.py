"""The command `export`: find the launch, hand the kernel to pyasc, write the C++."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request
from ascend_sim.cli.show import complain
from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, ExportError
from ascend_sim.export.environment import find_python, make_environment
from ascend_sim.export.front_end import translate
from ascend_sim.export.recording import Specialisation, record


def export(request: Request, simulate: Any, *, out: Path | None, python: str | None) -> int:
    """Write the C++ of the kernel that the target launches first, or of `request.kernel`.

    `simulate` runs the request as `run` does. Raises `ConfigError` for a target that launches no such kernel, or
    where pyasc is missing; `ExportError` for a kernel that pyasc does not translate.
    """
    if out is not None and out.is_dir():
        raise ConfigError(f"--out {out} is a directory; name a file, such as {out / 'kernel.cpp'}")
    found = find_python(python)
    spec = _specialisation(request, simulate)
    soc = load_chip(request.chip or "ascend910b1").soc
    text = translate(spec, found, request.arguments, soc).text
    if out is None:
        print(text, end="")
        return 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from None
    print(f"{spec.kernel}: {out}")
    return 0


def setup() -> int:
    """Make the environment that pyasc runs in, once."""
    complain("setting up pyasc: a virtual environment of 170 MB with packages from PyPI, once")
    print(make_environment())
    return 0


def _specialisation(request: Request, simulate: Any) -> Specialisation:
    ended: list[Outcome] = []
    # What the program prints is not the result, and goes to standard error.
    with redirect_stdout(sys.stderr):
        spec = record(lambda: ended.append(simulate(request)), request.kernel)
    if spec is not None:
        return spec
    for outcome in ended:
        if outcome.error is not None:
            from ascend_sim.cli.program import describe

            raise ExportError(f"{request.target} ended before a launch: {describe(outcome.error)}")
    raise ConfigError(f"{request.target} launches no kernel with these options")
