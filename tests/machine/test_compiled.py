"""Modules compiled ahead of time: they do what their sources say, and changed sources are not passed over."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

from ascend_sim import compiled

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "ascend_sim"

PROGRAM = """
import json, sys
import numpy as np
import ascend_sim as sim
from ascend_sim import asc, compiled
from ops.laser_attention_grad import kernel  # noqa: F401  as many modules as there are

@asc.jit
def add(x, y, n, forget):
    pipe = asc.TPipe()
    queue, out = asc.TQue(asc.TPosition.VECIN, 2), asc.TQue(asc.TPosition.VECOUT, 2)
    pipe.init_buffer(queue, 2, n * 2)
    pipe.init_buffer(out, 2, n * 2)
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x)
    target.set_global_buffer(y)
    for tile in range(6):
        loaded = queue.alloc_tensor(x.dtype)
        asc.data_copy(loaded, source[tile * n], n)
        queue.enque(loaded)
        loaded = queue.deque(x.dtype)
        done = out.alloc_tensor(x.dtype)
        asc.adds(done, loaded, 1.0, n)
        if tile == 3 and forget:
            asc.adds(loaded, loaded, 1.0, n)  # races with nothing, but nobody reads it
        queue.free_tensor(loaded)
        out.enque(done)
        done = out.deque(x.dtype)
        asc.data_copy(target[tile * n], done, n)
        out.free_tensor(done)

x = np.arange(6 * 512).astype(np.float16)
said = []
for forget in (False, True):
    y = np.zeros_like(x)
    run = sim.launch(add, x, y, 512, forget, cores=2, checks="collect")
    said.append([run.cycles, float(y.sum()), [[f.kind, f.code, f.line] for f in run.findings]])
    items = [i for core in run.log.cores for i in core.items]
    said.append([[i.issue, i.start, i.end, i.name, i.site] for i in items])
    said.append(run.recording().replay().cycles if not forget else 0)
print(json.dumps([compiled.is_compiled(), said]))
"""


def _said(**variables: str) -> tuple[bool, object]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    is_compiled, said = json.loads(done.stdout)
    return bool(is_compiled), said


def test_compiled_code_and_its_sources_agree_item_by_item() -> None:
    if not compiled.is_compiled():
        pytest.skip("nothing is compiled here: no C compiler, or a source has changed since")
    fast, one = _said()
    slow, other = _said(**{compiled.VARIABLE: "1"})
    assert (fast, slow) == (True, False)
    assert one == other


@pytest.mark.parametrize(
    ("change", "variable", "turned_away"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_what_has_changed_since_runs_from_source(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: bool,
    variable: bool,
    turned_away: bool,
) -> None:
    source = tmp_path / "gm.py"
    source.write_text("ONE = 1\n")
    note = tmp_path / "compiled.json"
    note.write_text(json.dumps({"gm": zlib.crc32(source.read_bytes())}))
    if change:
        source.write_text("ONE = 2\n")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    monkeypatch.setattr(compiled, "NOTE", note)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    if variable:
        monkeypatch.setenv(compiled.VARIABLE, "1")
    before = list(sys.meta_path)
    compiled.use_sources_that_changed()
    assert (sys.meta_path != before) is turned_away
    if turned_away:
        spec = sys.meta_path[0].find_spec("ascend_sim.gm", None)
        assert spec is not None and spec.origin == str(source)
        assert sys.meta_path[0].find_spec("ascend_sim.l2", None) is None


def _compiled_modules() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["tool"]["hatch"]["build"]["hooks"]["custom"]["modules"])


@pytest.mark.parametrize("name", _compiled_modules())
def test_a_compiled_class_has_no_base_that_is_not_compiled(name: str) -> None:
    """Modules outside are not looked at when these are compiled: such a base would be lost without a word."""
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    known = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            top, _, module = node.module.partition(".")
            if top in sys.stdlib_module_names or (
                top == "ascend_sim" and module in _compiled_modules()
            ):
                known |= {alias.name for alias in node.names}
    known |= {"Exception", "BaseException"}
    bases = [
        base.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name)
    ]
    assert [base for base in bases if base not in known] == []


@pytest.mark.parametrize("name", _compiled_modules())
def test_a_compiled_class_with_a_compiled_base_may_be_inherited_from(name: str) -> None:
    """Else mypyc's constructor runs `__init__`, and Python, which finds the base's, runs it again."""
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    plain = {"Enum", "IntEnum", "NamedTuple", "Exception", "BaseException"}
    found = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and {ast.unparse(base) for base in node.bases} - plain
        and "mypyc_attr(allow_interpreted_subclasses=True)"
        not in [ast.unparse(decorator) for decorator in node.decorator_list]
    ]
    assert found == []


@pytest.mark.parametrize("name", ["core", "flag_items", "issuer", "program", "scalar_items"])
def test_no_compiled_function_turns_a_users_int_into_a_float(name: str) -> None:
    """An annotation `float` does that in compiled code, so values of kernels go by another one."""
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    found = [
        f"{node.name}: {argument.arg}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.args, *node.args.kwonlyargs]
        if argument.annotation is not None and "float" in ast.unparse(argument.annotation)
    ]
    assert found == []
