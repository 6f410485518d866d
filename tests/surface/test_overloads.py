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
    # Stubs that pyasc's own functions do not follow: other fields, other keywords, an argument too few.
    "UnaryRepeatParams(block_count: int = 1, block_len: int = 0, src_stride: int = 0, dst_stride: int = 0)",
    "LocalTensor()",
    "trans_data_to_5hd(dst_list: TensorList, src_list: TensorList, params: TransDataTo5HDParams)",
    "trans_data_to_5hd(dst_list: AddrList, src_list: AddrList, params: TransDataTo5HDParams)",
    "trans_data_to_5hd(dst: LocalTensor, src: LocalTensor, params: TransDataTo5HDParams)",
    "set_atomic_add()",
    "set_atomic_max()",
    "set_atomic_min()",
    "set_atomic_type()",
}
REFUSED = ("ListTensorDesc.", "TensorDesc.")  # their constructors refuse
DEFAULTS_OF_OUR_OWN = {
    "MmadParams",  # None means that a member keeps what it has: 0, and True for cmatrix_init_val
    "fixpipe",  # pyasc's default is a method; ours what it returns
}
DOCUMENTED = [
    line for line in OVERLOADS if line not in NO_SUCH_FORM and not line.startswith(REFUSED)
]


def _parse(line: str) -> tuple[str, list[tuple[str, str | None]], int]:
    """Return the name, the parameters with their defaults, and how many of them have a position only."""
    name, _, rest = line.partition("(")
    function: Any = ast.parse(f"def f({rest.removesuffix(')')}): ...").body[0]
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    none: list[Any] = [None] * (len(plain) - len(arguments.defaults))
    defaults = none + [ast.unparse(default) for default in arguments.defaults]
    given = [(one.arg, default) for one, default in zip(plain, defaults, strict=True)]
    return name, given, len(arguments.posonlyargs)


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


@pytest.mark.parametrize("line", DOCUMENTED)
def test_every_documented_form_binds(line: str) -> None:
    name, given, bare = _parse(line)
    thing = _find(name)
    if thing is None:
        pytest.skip(f"{name} does not exist: test_names.py tells")
    signature = _signature(name, thing)
    signature.bind(*[object()] * len(given))
    words = [word for word, _ in given[bare:]]
    needed = [word for word, default in given[bare:] if default is None]
    for some in (words, needed):
        signature.bind(*[object()] * bare, **{word: object() for word in some})
    if name in DEFAULTS_OF_OUR_OWN:
        return
    for word, default in given:
        if default not in (None, "None") and word in signature.parameters:
            ours = signature.parameters[word].default
            assert ours == eval(default, {"KT": asc, **vars(asc)}), f"{word}: {ours}"
