"""Every way to call something that pyasc documents binds here: by position and by name, with pyasc's defaults."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
import read_pyasc

from ascend_sim import asc

OVERLOADS = read_pyasc.stored()["overloads"]
NO_SUCH_FORM = {
    # pyasc's own stub names the fields of a copy; its function takes strides.
    "UnaryRepeatParams(block_count: int = 1, block_len: int = 0, src_stride: int = 0, dst_stride: int = 0)",
    # Documented, and refused by pyasc itself: nothing says what would be in the tensor.
    "LocalTensor()",
}
DEFAULTS_OF_OUR_OWN = {
    "MmadParams",  # None means that a member keeps what it has: 0, and True for cmatrix_init_val
    "SliceInfo",
    "fixpipe",  # pyasc's default is a method; ours what it returns
    "TQue",  # pyasc's None is refused there
}


def _parse(line: str) -> tuple[str, list[tuple[str, str | None]]]:
    name, _, rest = line.partition("(")
    arguments = ast.parse(f"def f({rest.removesuffix(')')}): ...").body[0].args  # type: ignore[attr-defined]
    plain = arguments.args
    none: list[Any] = [None] * (len(plain) - len(arguments.defaults))
    defaults = none + [ast.unparse(default) for default in arguments.defaults]
    return name, [(one.arg, default) for one, default in zip(plain, defaults, strict=True)]


def _find(name: str) -> Any:
    thing: Any = asc
    for part in name.split("."):
        thing = getattr(thing, part, None)
    return thing


def _signature(name: str, thing: Any) -> inspect.Signature:
    signature = inspect.signature(thing)
    if "." in name and "self" in signature.parameters:
        parameters = [value for key, value in signature.parameters.items() if key != "self"]
        return signature.replace(parameters=parameters)
    return signature


@pytest.mark.parametrize("line", [line for line in OVERLOADS if line not in NO_SUCH_FORM])
def test_every_documented_form_binds(line: str) -> None:
    name, given = _parse(line)
    thing = _find(name)
    if thing is None:
        pytest.fail(f"{name} does not exist")
    signature = _signature(name, thing)
    given = [(word.strip("*"), default) for word, default in given]
    signature.bind(*[object()] * len(given))
    signature.bind(**{word: object() for word, _ in given})
    signature.bind(**{word: object() for word, default in given if default is None})
    if name in DEFAULTS_OF_OUR_OWN:
        return
    for word, default in given:
        if default is not None and word in signature.parameters:
            ours = signature.parameters[word].default
            assert ours == eval(default, {"KT": asc, **vars(asc)}), f"{word}: {ours}"
