"""Write the parts of the documents that follow from the source: every finding code, every name of the language.

They stand between `<!-- begin NAME -->` and `<!-- end NAME -->` in the documents of `PARTS`. A test asserts that they
are up to date. The accuracy card is made from `benchmarks/measured/results.json`, which `make accuracy` makes anew.

    python docs/generate.py
"""

from __future__ import annotations

import enum
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from ascend_sim import asc
from ascend_sim.accuracy.card import card, load_result
from ascend_sim.accuracy.families import folder
from ascend_sim.codes import finding_codes
from ascend_sim.errors import EXIT_CODE, KINDS
from ascend_sim.instructions.table import instruction_rows, language_rows
from ascend_sim.lang.refused import NOT_SIMULATED
from ascend_sim.vendor_codes import vendor_of
from isa.vector.refused import REFUSED

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
CLASSES = (
    "TPipe", "TQue", "TQueBind", "TBuf", "TBufPool", "LocalMemAllocator", "GlobalTensor", "LocalTensor", "ShapeInfo",
    "DataType", "ConstExpr", "FixpipeConfig",
)  # fmt: skip


def code_table() -> str:
    """Return a section a kind, with each code and what its message says."""
    known = finding_codes()
    lines = []
    for kind in sorted({kind for kind, _ in known}, key=KINDS.index):
        lines += [
            f"### {kind}, exit code {EXIT_CODE[kind]}",
            "",
            "| code | says | elsewhere |",
            "|---|---|---|",
        ]
        for code in sorted(code for its_kind, code in known if its_kind == kind):
            says = " · ".join(_cell(message) for message in known[kind, code])
            lines.append(f"| `{code}` | {says} | {', '.join(vendor_of(kind, code).names())} |")
        lines.append("")
    return "\n".join(lines)


def _cell(message: str) -> str:
    first = " ".join(message.split())
    first = re.sub(r"…( …)+", "…", first)
    return first.replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")


# ---- names of the language ------------------------------------------------------------------


def pyasc_names() -> set[str]:
    """Return the public names of pyasc, `Class.method` among them."""
    lines = (DOCS / "pyasc-1.1.1.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def our_names() -> set[str]:
    """Return the public names of `ascend_sim.asc`, `Class.method` among them."""
    names = set(asc.__all__)
    for name in CLASSES:
        names |= {f"{name}.{method}" for method, _ in _methods(name)}
    return names


def _methods(name: str) -> list[tuple[str, Any]]:
    members = inspect.getmembers(getattr(asc, name), callable)
    return [
        (member, value)
        for member, value in members
        if not member.startswith("_") and not inspect.isclass(value)
    ]


def _arguments(function: Any) -> str:
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        is_keyword = parameter.kind is parameter.VAR_KEYWORD
        star = "**" if is_keyword else "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = parameter.default
        if default is parameter.empty:
            text = ""
        elif isinstance(default, enum.Enum):
            text = f"={default.name}"
        else:
            text = f"={default!r}"
        parts.append(star + parameter.name + text)
    return ", ".join(parts)


def _says(thing: Any) -> str:
    """Return the first paragraph of a docstring."""
    return _cell((inspect.getdoc(thing) or "").partition("\n\n")[0])


def name_tables() -> str:
    """Return a table a module: its functions and classes with their arguments, then the types."""
    modules: dict[str, list[str]] = {}
    types = []
    for name in sorted(asc.__all__):
        thing = getattr(asc, name)
        if isinstance(thing, asc.DataType):
            types.append(f"`{name}`" + ("" if thing.name == name else f" ({thing.name})"))
        else:
            modules.setdefault(thing.__module__, []).append(name)
    lines = []
    for module, names in sorted(modules.items()):
        title = (inspect.getdoc(inspect.getmodule(getattr(asc, names[0]))) or module).split("\n")[0]
        lines += [f"**{title}**", "", "| name | what it is |", "|---|---|"]
        lines += [f"| `{_call(name)}` | {_says(getattr(asc, name))} |" for name in names]
        lines.append("")
    lines += [f"**Element types.** {', '.join(types)}.", ""]
    for name in CLASSES:
        lines += [f"**Methods of {name}**", "", "| method | what it does |", "|---|---|"]
        lines += [f"| `{m}({_arguments(f)})` | {_says(f)} |" for m, f in _methods(name)]
        lines.append("")
    return "\n".join(lines)


def _call(name: str) -> str:
    thing = getattr(asc, name)
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, enum.Enum)):
        return name
    return f"{name}({_arguments(thing)})"


def additions() -> str:
    """Return the names that pyasc does not have."""
    return _list(our_names() - pyasc_names())


def refused() -> str:
    """Return the calls of pyasc that stop with a reason: what the 910B lacks, and what is not simulated."""
    lines = ["| name | why not |", "|---|---|"]
    reasons = {name: f"{why}: {instead}" for name, (why, instead) in REFUSED.items()}
    reasons |= NOT_SIMULATED
    names = sorted(pyasc_names() & set(reasons), key=str.lower)
    lines += [f"| `{name}` | {_cell(reasons[name])} |" for name in names]
    missing = pyasc_names() - our_names()
    assert not missing, f"neither here nor refused: {missing}"
    return "\n".join(lines)


def jit_options() -> str:
    """Return a table of asc.jit's options and their defaults."""
    lines = ["| option | default |", "|---|---|"]
    for kind in (asc.CompileOptions, asc.CodegenOptions):
        lines += [f"| `{field.name}` | `{field.default!r}` |" for field in fields(kind)]
    return "\n".join(lines)


def _list(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names, key=str.lower)) + "."


# ---- AscendC, pyasc, and what is here --------------------------------------------------------


def instruction_table() -> str:
    """Return a row for each instruction and call."""
    rows = instruction_rows(pyasc_names())
    lines = [
        f"| {_code(r.ascendc)} | {_code(r.pyasc)} | {r.pipe} | {_cell(r.here)} |" for r in rows
    ]
    return "\n".join(["| AscendC | pyasc | pipe | here |", "|---|---|---|---|", *lines])


def language_table() -> str:
    """Return a row for everything of pyasc that is no instruction."""
    rows = language_rows(pyasc_names())
    lines = [f"| {_code(r.ascendc)} | {_code(r.pyasc)} | {_cell(r.here)} |" for r in rows]
    return "\n".join(["| AscendC | pyasc | here |", "|---|---|---|", *lines])


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", ")) if names else ""


# ---- measured against simulated time ---------------------------------------------------------


def accuracy_card() -> str:
    """Return the accuracy card of the last campaign (`make accuracy`)."""
    return card(load_result(folder() / "results.json"))


# ---- documents ------------------------------------------------------------------------------

PARTS = {
    "accuracy.md": {"card": accuracy_card},
    "checks.md": {"codes": code_table},
    "instructions.md": {"instructions": instruction_table, "language": language_table},
    "language.md": {"additions": additions, "names": name_tables},
    "pyasc.md": {"options": jit_options, "refused": refused},
}


def filled(document: str) -> str:
    """Return the text of a document with its generated parts made anew."""
    text = (DOCS / document).read_text(encoding="utf-8")
    for name, make in PARTS[document].items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{make().rstrip()}\n{end}{after}"
    return text


def main() -> None:
    """Write all documents that have generated parts."""
    for document in PARTS:
        text = filled(document)
        (DOCS / document).write_text(text, encoding="utf-8")
        print(f"docs/{document}")


if __name__ == "__main__":
    main()
