"""Give one kernel to pyasc's front end and take its AscendC C++, or say what pyasc does not know."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_sim import asc as language
from ascend_sim.errors import ConfigError, ExportError
from ascend_sim.export.recording import Specialisation

DRIVER = Path(__file__).with_name("driver.py")
TIME_LIMIT = 300.0

ADVICE = {
    "Break": "let the loop run to its end, and put what a break would skip under an `if`",
    "Continue": "put the rest of the loop's body under an `if`",
    "Try": "a kernel cannot catch; check with `if` instead",
    "Raise": "use asc.ascendc_assert, or check on the host",
    "Lambda": "write a function of its own with @asc.jit",
    "ListComp": "write the elements out, or fill them in an asc.static_range loop",
    "GeneratorExp": "write the elements out, or loop over asc.static_range",
    "DictComp": "pass the values as arguments of their own",
    "Dict": "pass the values as arguments of their own, or in an asc.Struct",
    "ClassDef": "write functions with @asc.jit that take queues and tensors as arguments",
    "NamedExpr": "assign on a line of its own",
    "Starred": "write the arguments out",
    "Global": "pass the value as an argument",
    "Nonlocal": "pass the value as an argument",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
}
"""What to write instead of a construct outside pyasc's subset of Python, by the name of its syntax node."""

_ADVICE_ON_WORDS = (
    (
        "re-assigned to an object with different type",
        "start it with a value of the later type, one known at run time only (a loop cannot change a literal)",
    ),
    ("Return statement is not allowed in nested blocks", "return once, at the function's end"),
    ("must have the same DataType", "make both bounds of one type"),
    ("Nested functions are not supported", "move it to the top of the file, with @asc.jit"),
    ("Only for-loops with range", "loop over range or asc.static_range"),
    ("Only simple comparison", "write `(a < b) and (b < c)`"),
    ("Chained boolean operators", "group pairs: `(a and b) and c`"),
    (
        "issubclass() arg 1 must be a class",
        "leave out `from __future__ import annotations`: pyasc needs the annotations themselves, not their text",
    ),
    ("computes a while loop's condition", "use a for loop over range, with an `if` in it"),
    (
        "drops what is given to MmadParams",
        "name unit_flag, cmatrix_source and cmatrix_init_val, all three, after m, n and k",
    ),
    (
        "writes CastDeq with",
        "cast to float32, multiply by the scale, and cast from float16 to the 8-bit type",
    ),
    ("keeps one bit of MmadParams", "order Mmad and Fixpipe by flags"),
    ("object cannot be interpreted as an integer", "put @asc.jit before the helper it is used in"),
)


@dataclass(frozen=True, slots=True)
class Exported:
    """A translated kernel."""

    cpp: str
    pyasc: str
    constants: dict[str, str]
    specialisation: Specialisation

    @property
    def text(self) -> str:
        """The C++ with a heading that says what it was made from and for."""
        return "".join(f"// {line}\n" for line in self._heading()) + self.cpp

    def _heading(self) -> Iterator[str]:
        spec = self.specialisation
        yield f"{spec.kernel} of {spec.file.name}, translated by pyasc {self.pyasc}"
        options = "".join(f", {name}={value!r}" for name, value in sorted(spec.options.items()))
        yield f"launched on {spec.blocks} block{'s' if spec.blocks > 1 else ''}{options}; specialised for"
        for value in spec.values:
            name, kind = value["name"], value["kind"]
            if name in self.constants:
                yield f"  {name} = {self.constants[name]}"
            elif kind == "tensor":
                yield f"  {name}: tensor of {value['value']}"
            else:
                yield f"  {name}: {value.get('type') or type(value['value']).__name__}"


def order(spec: Specialisation, arguments: list[str], soc: str) -> dict[str, Any]:
    """Return what the driver is told."""
    return {
        "file": str(spec.file),
        "module": spec.module,
        "kernel": spec.kernel,
        "values": list(spec.values),
        "arguments": arguments,
        "soc": soc,
    }


def translate(
    spec: Specialisation, python: Path, arguments: list[str] | None = None, soc: str = "Ascend910B1"
) -> Exported:
    """Return the kernel's C++. Raises `ExportError` where pyasc refuses it: file, line, construct, what to write."""
    (answer,) = translate_all([spec], python, arguments, soc)
    if isinstance(answer, ExportError):
        raise answer
    return answer


def translate_all(
    specs: Sequence[Specialisation],
    python: Path,
    arguments: list[str] | None = None,
    soc: str = "Ascend910B1",
) -> list[Exported | ExportError]:
    """Translate several kernels by one process of pyasc's Python; for each the C++ or the error."""
    answers = _ask(python, [order(spec, arguments or [], soc) for spec in specs])
    return [
        ExportError(_explain(answer["error"], spec))
        if "error" in answer
        else Exported(answer["cpp"], answer["pyasc"], answer["constants"], spec)
        for spec, answer in zip(specs, answers, strict=True)
    ]


def _ask(python: Path, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        result = subprocess.run(
            [str(python), "-I", str(DRIVER)],
            input=json.dumps(orders),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIME_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{python} does not answer: {error}") from None
    try:
        answers: list[dict[str, Any]] = json.loads(result.stdout)
    except ValueError:
        said = "\n  ".join(result.stderr.strip().splitlines()[-6:]) or "nothing"
        kernels = ", ".join(f"{order['kernel']} ({order['file']})" for order in orders)
        raise ExportError(
            f"pyasc's front end broke off on {kernels}, status {result.returncode}:\n  {said}"
        ) from None
    return answers


def _explain(error: dict[str, Any], spec: Specialisation) -> str:
    """Return the message: where, what pyasc says, the line, what to write instead."""
    said = re.sub(r"\s+", " ", str(error["message"])).strip().removeprefix("Trap: ")
    file = Path(error.get("file") or spec.file)
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    place = f"{shown}:{error.get('line') or spec.line}"
    construct = error.get("construct", "")
    lines = [f"{place}: pyasc cannot translate {spec.kernel}: {said}"]
    if error.get("source"):
        lines.append(f"    {error['source']}")
    advice = _advice(said, construct)
    if advice:
        lines.append(f"  {advice}")
    return "\n".join(lines)


def _advice(said: str, construct: str) -> str:
    unknown = re.search(r"'module' object has no attribute '(\w+)'", said)
    if unknown and hasattr(language, unknown[1]):
        return (
            f"asc.{unknown[1]} is an addition of this simulator (docs/language.md lists them): pyasc does not "
            "have it"
        )
    no_type = re.search(r"Unsupported DataType name: (\w+)", said)
    if no_type:
        return f"pyasc has no element type {no_type[1]}: launch the kernel on another, float16 or float32 for example"
    if construct in ADVICE and "syntax is not supported" in said:
        return f"Instead: {ADVICE[construct]}"
    for words, advice in _ADVICE_ON_WORDS:
        if words in said:
            return f"Instead: {advice}"
    return ""
