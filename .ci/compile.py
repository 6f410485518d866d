"""Compile the simulator's hot modules ahead of time, from the same sources, with mypyc.

A build hook of hatchling: it runs whenever the package is built or installed, editable too, where a C compiler is.
Where there is none the simulator runs from its sources, with the same results, some three times slower; so it does when
ASCEND_SIM_PURE is set. `python .ci/compile.py` compiles in place.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import tomllib
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
GROUP = "ascend_sim"
NOTE = Path("ascend_sim") / "compiled.json"
"""Which sources have been compiled; see `ascend_sim/compiled.py`, which reads it."""


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, or to the checkout of an editable installation."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files are gathered."""
        if self.target_name != "wheel" or os.environ.get("ASCEND_SIM_PURE"):
            return
        try:
            files = compile_modules(ROOT)
        except Exception as error:
            self.app.display_warning(f"not compiled, runs from its sources: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version != "editable":
            build_data["force_include"].update({str(ROOT / file): str(file) for file in files})


def modules(root: Path) -> list[str]:
    """Return the names of the modules that are compiled, inside the package."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["tool"]["hatch"]["build"]["hooks"]["custom"]["modules"])


def compile_modules(root: Path) -> list[Path]:
    """Compile in place; return the files that this has made. Raises what compilers raise."""
    from mypyc.build import mypycify  # noqa: PLC0415  not there where nothing is compiled
    from setuptools import Distribution  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    names = modules(root)
    before = Path.cwd()
    os.chdir(root)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            extensions = mypycify(
                [
                    "--config-file=",
                    "--follow-imports=skip",  # types of other modules' values are looked at when it runs
                    "--ignore-missing-imports",
                    *(f"{GROUP}/{name}.py" for name in names),
                ],
                opt_level="2",
                debug_level="0",
                group_name=GROUP,
                target_dir=scratch,
            )
            command = build_ext(
                Distribution({"name": GROUP, "ext_modules": extensions, "packages": []})
            )
            command.inplace = True
            command.build_temp = str(Path(scratch) / "objects")
            command.ensure_finalized()
            command.run()
            made = [Path(command.get_ext_filename(one.name)) for one in extensions]
    except SystemExit as stop:  # so mypyc ends where a type is wrong
        raise RuntimeError("mypyc found errors, printed above") from stop
    finally:
        os.chdir(before)
    sums = {name: zlib.crc32((root / GROUP / f"{name}.py").read_bytes()) for name in names}
    (root / NOTE).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
    return [*made, NOTE]


if __name__ == "__main__":
    print(*compile_modules(ROOT), sep="\n", file=sys.stderr)
