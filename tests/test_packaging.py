"""What a user gets: the commands that the README names, the files that a wheel carries."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["ascend_sim", "isa", "ops"]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _distribution(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9_-]+", requirement)
    assert found
    return found[0].lower().replace("-", "_")


def _top_level_imports() -> set[str]:
    names: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def test_every_import_is_a_declared_dependency(project: dict[str, Any]) -> None:
    declared = {_distribution(r) for r in project["project"]["dependencies"]}
    declared |= {_distribution(r) for r in project["project"]["optional-dependencies"]["tune"]}
    distribution = {"yaml": "pyyaml"}
    # Taken where they happen to be installed: torch tensors as arguments, pyasc for `export`; pytest loads its fixture.
    optional = {"torch", "asc", "IPython", "pytest"}
    missing = {distribution.get(n, n).lower() for n in _top_level_imports() - optional} - declared
    assert missing == set()


def test_every_dependency_has_a_floor(project: dict[str, Any]) -> None:
    table = project["project"]
    extras = [r for group in table["optional-dependencies"].values() for r in group]
    assert [r for r in [*table["dependencies"], *extras] if ">=" not in r] == []


def test_the_readme_names_the_two_commands_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", readme, re.MULTILINE)
    assert commands[:2] == ["demo", "test"]
    assert [name for name in commands if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []


def test_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r'\(cd "\$clone" && clean_env( \w+="\S*")* make test\)', script)


def test_the_licence_is_there(project: dict[str, Any]) -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    assert project["project"]["license"] == "Apache-2.0"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and source distribution of this checkout; needs a package registry for hatchling."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.mark.slow
def test_the_wheel_carries_packages_and_chips_and_no_tests(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    library = {top for top in tops if top.startswith("ascend_sim__mypyc.")}  # of compiled modules
    assert tops - library == set(PACKAGES)
    assert len(library) == ("ascend_sim/compiled.json" in names)
    shipped = {f"ascend_sim/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    assert {name for name in names if name.endswith(".yaml")} >= shipped
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


@pytest.mark.slow
def test_the_source_distribution_carries_tests_and_chips(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"tests/conftest.py", "configs/toy.yaml", "Makefile", "LICENSE", "README.md"} <= names
    assert not [name for name in names if name.startswith(("runs/", ".venv/", "dist/"))]
    assert ".ci/compile.py" in names and not [name for name in names if name.endswith(".so")]


@pytest.mark.slow
def test_an_installed_wheel_finds_its_chips(dist: Path, tmp_path: Path) -> None:
    home = tmp_path / "installed"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    wheel = next(dist.glob("*.whl"))
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, env=clean)
    code = "from ascend_sim.config import *; print(load_chip('toy').name, *list_chips())"
    said = subprocess.check_output([python, "-c", code], cwd=tmp_path, env=clean, text=True)
    assert said.split()[0] == "toy"
    assert len(said.split()) == 1 + 6
