"""The shape of the code base, read from its source: who imports whom, what is documented, what is long."""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("isa", "ascend_sim", "ops")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONG_FILE = 500
REPORT_MAY = (
    "ascend_sim.trace",
    "ascend_sim.config",
    "ascend_sim.errors",
    "ascend_sim.report",
    "isa.types",
)
REPORT_THIRD_PARTY = ("rich", "bokeh", "plotly", "numpy")


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything that a file imports, inside functions too."""
    package = _module(path).split(".")
    if path.stem != "__init__":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{module}.{alias.name}"
                yield node.lineno, full if _is_module(full) else module


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


def _is_stdlib(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def _offences(folder: str, allowed: tuple[str, ...], exempt: tuple[str, ...] = ()) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in SOURCES
        if _within(_module(path), (folder,)) and not _within(_module(path), exempt)
        for line, name in _imports(path)
        if not _is_stdlib(name) and not _within(name, allowed)
    ]


def test_there_is_something_to_check() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} >= {"isa", "ascend_sim"}
    imported = {name for path in SOURCES for _, name in _imports(path)}
    assert "isa.types" in imported


def test_isa_stands_on_numpy_alone() -> None:
    assert _offences("isa", ("isa", "numpy", "ml_dtypes", "numkong")) == []


def test_the_simulator_does_not_know_the_operators() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in SOURCES
        if _within(_module(path), ("ascend_sim",))
        for line, name in _imports(path)
        if _within(name, ("ops",)) and not _module(path).startswith("ascend_sim.cli")
    ]
    assert offences == []


def test_the_command_line_finds_operators_only_when_asked() -> None:
    eager = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        if _module(path).startswith("ascend_sim.cli")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
        if _within(name, ("ops",))
    ]
    assert eager == []


def test_reports_read_the_log_and_the_chip_and_nothing_else() -> None:
    assert _offences("ascend_sim.report", REPORT_MAY + REPORT_THIRD_PARTY) == []


def test_nothing_imports_tests_or_examples() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in SOURCES
        for line, name in _imports(path)
        if _within(name, ("tests", "examples", "benchmarks"))
    ]
    assert offences == []


def test_relative_imports_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The checks above are worth nothing if an import can hide from them.
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    package = tmp_path / "ascend_sim" / "report"
    package.mkdir(parents=True)
    (package.parent / "machine.py").touch()
    for name, text in {
        "a.py": "from .. import machine",
        "b.py": "from ..machine import Core",
        "c.py": "def f():\n    from ascend_sim import machine",
        "__init__.py": "from ..machine import Core",
    }.items():
        (package / name).write_text(text)
        assert [found for _, found in _imports(package / name)] == ["ascend_sim.machine"]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_this_projects(package: str) -> None:
    module = importlib.import_module(package)
    origin = module.__file__ or next(iter(module.__path__))
    assert Path(origin).resolve().is_relative_to(ROOT)


def test_public_modules_are_documented() -> None:
    undocumented = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if not any(part.startswith("_") and part != "__init__" for part in _module(path).split("."))
        and path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert undocumented == []


@pytest.mark.filterwarnings("default:long file")
def test_files_fit_in_a_head() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    for path, length in lengths.items():
        if length > LONG_FILE:
            warnings.warn(f"long file: {path.relative_to(ROOT)} has {length} lines", stacklevel=1)
    assert max(lengths.values()) <= 600


def test_each_package_is_typed() -> None:
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []
