"""Write the parts of the documents that follow from the source: every finding code, every name of the language.

They stand between `<!-- begin NAME -->` and `<!-- end NAME -->` in the documents of `PARTS`. A test asserts that they
are up to date. The accuracy card is made from `benchmarks/measured/results.json`, which `make accuracy` makes anew,
the tables of studies from `benchmarks/studies.json`, which `python benchmarks/studies.py` makes.

    python docs/generate.py
"""

from __future__ import annotations

import enum
import inspect
import json
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
STUDIES = ROOT / "benchmarks" / "studies.json"
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


# ---- studies --------------------------------------------------------------------------------


def _studies() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(STUDIES.read_text(encoding="utf-8"))
    return found


def rope_map() -> str:
    """Return the map of rope_grad's constants: a row for samples, chip and buffers, the best time of it in bold."""
    rows: dict[tuple[str, str, int], dict[int, float | None]] = {}
    for one in _studies()["map"]:
        cells = rows.setdefault((one["seq"], one["chip"], one["BUFFER_NUM"]), {})
        cells[one["MAX_PROCESS_NUM"]] = one["time_us"]
    sizes = sorted({size for cells in rows.values() for size in cells})
    order = {seq: place for place, (seq, *_) in enumerate(rows)}
    lines = [
        f"| samples | chip | buffers | {' | '.join(map(str, sizes))} |",
        f"|---|---|---{'|---:' * len(sizes)}|",
    ]
    for key in sorted(rows, key=lambda key: (order[key[0]], *key[1:])):
        cells, best = rows[key], min(time for time in rows[key].values() if time is not None)
        texts = [_time(cells.get(size), best) for size in sizes]
        lines.append(f"| {' | '.join(map(str, key))} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _time(time: float | None, best: float) -> str:
    if time is None:
        return "–"
    return f"**{time:.1f}**" if time == best else f"{time:.1f}"


def tuned_table() -> str:
    """Return the library's rope_grad beside the rewritten ones."""
    rows = _studies()["tuned"]
    lines = [
        "| variant | us | cycles | times as fast | of its lower bound, set by |",
        "|---|---:|---:|---:|---|",
    ]
    lines += [
        f"| {one['variant']} | {one['time_us']:.1f} | {one['cycles']:,} | "
        f"{rows[0]['cycles'] / one['cycles']:.2f} | {one['cycles'] / one['bound_cycles']:.2f}, {one['limit']} |"
        for one in rows
    ]
    return "\n".join(lines)


def rounds_table() -> str:
    """Return the time of laser_attention_grad by blocks a round, against the library's 16."""
    rows = _studies()["rounds"]
    heads = sorted({one["heads"] for one in rows})
    times = {(one["heads"], one["blocks"]): one["time_us"] for one in rows}
    lines = [
        f"| blocks a round |{''.join(f' N = {n}: us | against the library |' for n in heads)}",
        f"|---:|{'---:|---:|' * len(heads)}",
    ]
    for blocks in sorted({one["blocks"] for one in rows}):
        line = f"| {blocks}{' (library)' if blocks == 16 else ''} |"
        for n in heads:
            time = times.get((n, blocks))
            change = "" if time is None else _sign(100 * (time / times[n, 16] - 1), 0)
            line += f" {'' if time is None else f'{time:.1f}'} | {'' if blocks == 16 else change} |"
        lines.append(line)
    return "\n".join(lines)


def sampled_table() -> str:
    """Return how far sampled runs are from full ones, and what they cost."""
    lines = [
        "| shape | simulated | error | bound | CPU s | in full | MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for one in _studies()["sampled"]:
        full = "error" in one
        shape = ", ".join(f"{name} {_option(value)}" for name, value in one["options"].items())
        cells = [
            f"{one['operator']}, {shape}",
            _percent(one["simulated"] / one["of"], 0),
            _sign(100 * one["error"], 2) if full else "–",
            _percent(one["bound"], 2),
            f"{one['seconds']:.0f}",
            f"{one['full_seconds']:.0f}" if full else "–",
            f"{one['peak_mb']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    worst = max(
        (one for one in _studies()["sampled"] if "error" in one), key=lambda one: abs(one["error"])
    )
    lines += ["", f"The largest error of these is {_sign(100 * worst['error'], 2)}."]
    return "\n".join(lines)


def _option(value: str) -> str:
    first, *rest = value.split(",")
    return f"{len(rest) + 1} times {first}" if rest and set(rest) == {first} else value


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _sign(percent: float, digits: int) -> str:
    return f"{percent:+.{digits}f} %".replace("-", "−")


# ---- documents ------------------------------------------------------------------------------

PARTS = {
    "accuracy.md": {"card": accuracy_card},
    "checks.md": {"codes": code_table},
    "instructions.md": {"instructions": instruction_table, "language": language_table},
    "language.md": {"additions": additions, "names": name_tables},
    "pyasc.md": {"options": jit_options, "refused": refused},
    "tuning.md": {
        "sampled": sampled_table,
        "map": rope_map,
        "tuned": tuned_table,
        "rounds": rounds_table,
    },
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
