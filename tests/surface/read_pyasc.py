"""Reads the public surface of an installed pyasc from its source, without importing it: names, overloads, values.

    python tests/surface/read_pyasc.py [FOLDER OF asc]   writes pyasc-1.1.1.txt beside this file

What it writes are facts: names, the order of arguments, defaults, values of enumerations.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORED = HERE / "pyasc-1.1.1.txt"
NAMES = HERE.parent.parent / "docs" / "pyasc-1.1.1.txt"
MODULES = {
    "asc": ("__init__.py", "language/basic/__init__.py", "language/core/__init__.py", "language/fwk/__init__.py"),
    "asc.adv": ("language/adv/__init__.py",),
    "asc.runtime.config": ("runtime/config.py",),
    "asc.lib.runtime": ("lib/runtime/__init__.py",),
    "asc.lib.host": ("lib/host/__init__.py",),
}  # fmt: skip
"""Module: the files whose names it offers."""
NOT_FOR_PROGRAMS = {"from_ir", "to_ir", "get_ir_type", "rt", "lan_all"}
Row = list[tuple[str, str, str | None]]


FIND = "import importlib.util; print(importlib.util.find_spec('asc').origin)"


def installed() -> Path | None:
    """Return the folder of an installed pyasc: that of the Python ASCEND_SIM_PYASC, else one on Python's own path."""
    python = os.environ.get("ASCEND_SIM_PYASC")
    if python:
        found = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True)
        return Path(found.stdout.strip()).parent
    spec = importlib.util.find_spec("asc")
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    return origin.parent if origin is not None and (origin.parent / "_C").is_dir() else None


def names(folder: Path) -> dict[str, list[str]]:
    """Return the public names of each module."""
    found = {}
    for module, files in MODULES.items():
        public: set[str] = set()
        for file in files:
            for node in ast.parse((folder / file).read_text(encoding="utf-8")).body:
                own = isinstance(node, ast.ImportFrom) and node.level == 1
                if own and module != "asc.runtime.config":
                    public |= {alias.asname or alias.name for alias in node.names}  # type: ignore[attr-defined]
                elif isinstance(node, ast.ClassDef | ast.FunctionDef):
                    public.add(node.name)
        public = {name for name in public if not name.startswith(("_", "*")) and name != "set_soc"}
        found[module] = sorted(public - NOT_FOR_PROGRAMS - _modules(module))
    return found


def _modules(module: str) -> set[str]:
    return {"annotations", "Enum", "Optional", "Union"} | (
        {"basic", "core", "fwk", "__all__"} if module == "asc" else set()
    )


def enumerations(folder: Path) -> dict[str, list[tuple[str, int]]]:
    """Return the members of each enumeration of the language."""
    found = {}
    for node in ast.parse((folder / "language/core/enums.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            members = []
            for line in node.body:
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                    value = ast.literal_eval(line.value)
                    number = value[0] if isinstance(value, tuple) else value
                    members.append((line.targets[0].id, int(number)))
            found[node.name] = members
    return found


def overloads(folder: Path) -> dict[str, list[Row]]:
    """Return how each public function, class and method may be called; a row has name, type and default."""
    public = set(names(folder)["asc"])
    found: dict[str, list[Row]] = {}
    for part in ("basic", "core", "fwk"):
        for path in sorted((folder / "language" / part).glob("*.py")):
            _visit(ast.parse(path.read_text(encoding="utf-8")).body, "", found)
    _inherit(found)
    return {
        name: rows
        for name, rows in sorted(found.items())
        if name.split(".")[0] in public and not name.endswith(".ensure_shape")
    }


BASES = {"TQue": ("TQueBind", ""), "TBuf": ("TQueBind", "init_")}
"""Class: its base, and how the methods begin that programs may call; a TBuf is no queue."""


def _inherit(found: dict[str, list[Row]]) -> None:
    for name, (base, begin) in BASES.items():
        for inherited in [one for one in found if one.startswith(f"{base}.{begin}")]:
            found.setdefault(f"{name}.{inherited.partition('.')[2]}", found[inherited])


def _visit(body: list[ast.stmt], prefix: str, found: dict[str, list[Row]]) -> None:
    documented: dict[str, list[Row]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            _visit(node.body, f"{node.name}.", found)
        elif isinstance(node, ast.FunctionDef) and _is_public(node.name, prefix):
            name = prefix.rstrip(".") if node.name == "__init__" else prefix + node.name
            rows = documented.setdefault(name, [])
            own = _row(node.args, method=bool(prefix))
            if any(ast.unparse(line) == "overload" for line in node.decorator_list):
                rows.append(own)
                continue
            known = [{part for part, _, _ in row} for row in rows]
            rows += [
                row
                for row in _dispatched(node, own)
                if not any({part for part, _, _ in row} - {"handle"} <= names for names in known)
            ]
            found[name] = _clean(rows)


def _is_public(name: str, prefix: str) -> bool:
    return (not name.startswith("_") or name == "__init__") and (
        name not in NOT_FOR_PROGRAMS and not prefix.startswith("_")
    )


def _dispatched(node: ast.FunctionDef, own: Row) -> list[Row]:
    """Return the forms that the body tells apart by their types; the function's own form where it does not."""
    begin = [part for part in own if not part[0].startswith("*")]
    keywords = [part for part in begin if part[0] in _keyword_only(node)]
    begin = [part for part in begin if part not in keywords]
    forms: list[Row] = []
    for inner in ast.walk(node):
        if not isinstance(inner, ast.FunctionDef):
            continue
        for line in inner.decorator_list:
            if isinstance(line, ast.Call) and ast.unparse(line.func).endswith(".register"):
                form = [_registered(keyword) for keyword in line.keywords]
            elif ast.unparse(line).endswith(".register_auto"):
                form = _row(inner.args, method=False)
            else:
                continue
            told_apart = {part for part, _, _ in form}
            common = [part for part in begin if part[0] not in told_apart and part[2] is None]
            forms.append([*common, *form])
    if forms:
        return forms
    return [own] if not any(part[0].startswith("*") for part in own) else []


def _keyword_only(node: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in node.args.kwonlyargs}


def _registered(keyword: ast.keyword) -> tuple[str, str, str | None]:
    value = keyword.value
    if isinstance(value, ast.Call):  # DefaultValued(type, default)
        return str(keyword.arg), ast.unparse(value.args[0]), ast.unparse(value.args[1])
    return str(keyword.arg), ast.unparse(value), None


def _row(arguments: ast.arguments, *, method: bool) -> Row:
    plain = [*arguments.posonlyargs, *arguments.args]
    none: list[str | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults = none + [ast.unparse(default) for default in arguments.defaults]
    row = [
        (argument.arg, ast.unparse(argument.annotation) if argument.annotation else "", default)
        for argument, default in zip(plain, defaults, strict=True)
    ]
    if method and row and row[0][0] in {"self", "cls"}:
        row = row[1:]
    if arguments.posonlyargs:
        row.insert(len(arguments.posonlyargs) - (method and not arguments.args), ("/", "", None))
    for star, argument in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if argument is not None:
            row.append((star + argument.arg, "", None))
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        row.append(
            (
                argument.arg,
                ast.unparse(argument.annotation) if argument.annotation else "",
                ast.unparse(value) if value is not None else None,
            )
        )
    return row


RUNTIME = {
    "RuntimeInt": "int",
    "RuntimeBool": "bool",
    "RuntimeFloat": "float",
    "RuntimeNumeric": "Union[int, float]",
}


def _clean(rows: list[Row]) -> list[Row]:
    """Leave out compiler handles and repetitions."""
    kept: list[Row] = []
    for row in rows:
        if row and row[0][0] == "handle":
            continue
        plain = [
            (name, RUNTIME.get(kind, kind), default)
            for name, kind, default in row
            if name != "handle"
        ]
        if plain not in kept and not any(name.startswith("**") for name, _, _ in plain):
            kept.append(plain)
    return kept


def text(folder: Path) -> str:
    """Return everything as it is stored."""
    lines = ["# Public surface of pyasc 1.1.1, read from its source by read_pyasc.py."]
    for module, public in names(folder).items():
        lines += ["", f"[{module}]", *public]
    lines += ["", "[enumerations]"]
    for name, members in sorted(enumerations(folder).items()):
        lines.append(f"{name}: " + " ".join(f"{member}={value}" for member, value in members))
    lines += ["", "[overloads]"]
    for name, rows in overloads(folder).items():
        for row in rows:
            parts = [
                part
                + (f": {kind}" if kind else "")
                + (f" = {default}" if default is not None else "")
                for part, kind, default in row
            ]
            lines.append(f"{name}({', '.join(parts)})")
    return "\n".join(lines) + "\n"


def names_text(folder: Path) -> str:
    """Return the list that the documents are made with: names of `asc`, and methods of its classes."""
    public = names(folder)["asc"]
    methods = {
        name for name in overloads(folder) if "." in name and "TensorDesc." not in name
    }  # those two classes only refuse here
    head = "# Public names of pyasc 1.1.1's `asc`, and methods of its classes, read by tests/surface/read_pyasc.py."
    return "\n".join([head, *public, *sorted(methods)]) + "\n"


def stored() -> dict[str, list[str]]:
    """Return the lines of the stored file, by section."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in STORED.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            current.append(line)
    return sections


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else installed()
    if place is None:
        sys.exit("no pyasc found: name the folder of its package asc")
    STORED.write_text(text(place), encoding="utf-8")
    NAMES.write_text(names_text(place), encoding="utf-8")
