"""The doctor's edits of the order between cores: in the loops, on the right lines, and right in their numbers."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ascend_sim.doctor.search import Doctor
from ascend_sim.doctor.source import Edit, Source
from ascend_sim.errors import Finding
from ascend_sim.stage import rehearsing
from tests.doctor.kit import found_by, load

EXAMPLE = Path(__file__).parents[2] / "examples" / "08_mix_flags.py"
SMALL = (
    ("TILES = 8", "TILES = 3"),
    ("BLOCKS = 4", "BLOCKS = 1"),
    ("K = 128, 128, 256", "K = 32, 64, 32"),
)
SET_DONE = "asc.cross_core_set_flag(DONE, TOGETHER, asc.PipeID.PIPE_FIX)"
WAIT_DONE = "asc.cross_core_wait_flag(DONE, TOGETHER, asc.PipeID.PIPE_S)"
SET_FREE = "asc.cross_core_set_flag(FREE, TOGETHER, asc.PipeID.PIPE_MTE2)"
WAIT_FREE = "asc.cross_core_wait_flag(FREE, TOGETHER, asc.PipeID.PIPE_S)"


def without(*calls: str) -> str:
    """Return the example, smaller, with some calls left out."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for old, new in (*SMALL, *((call, "pass") for call in calls)):
        assert old in text
        text = text.replace(old, new)
    return text


def findings(module: ModuleType, places: int, doctor: Doctor | None = None) -> list[Finding]:
    """Run the example; where nothing is found its numbers are right."""
    draw = np.random.default_rng(8)
    blocks, tiles, rows, n, k = (
        getattr(module, name) for name in ("BLOCKS", "TILES", "ROWS", "N", "K")
    )
    a = draw.integers(-4, 5, (blocks * tiles * rows, k)).astype(np.float16)
    b = draw.integers(-4, 5, (k, n)).astype(np.float16)
    bias = draw.integers(-9, 10, n).astype(np.float32)
    c, workspace = (
        np.zeros((len(a), n), np.float32),
        np.zeros((blocks, places, rows, n), np.float32),
    )
    found = found_by(doctor, lambda: module.product[blocks](a, b, bias, workspace, c, places))
    if not found:
        np.testing.assert_array_equal(
            c, np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)
        )
    return found


def cured(text: str, places: int, folder: Path) -> tuple[Source, tuple[Edit, ...]]:
    """Return the source and the doctor's edits, after they have been written into the file and run."""
    doctor = Doctor()
    module = load(text, folder / "wrong.py")
    found = findings(module, places, doctor)
    assert found and doctor.cures, f"no edit after {doctor.trials} trials: {found}"
    source = Source(str(folder / "wrong.py"))
    right = ast.unparse(source.edited(doctor.cures[0]))
    assert findings(load(right, folder / "right.py"), places) == []
    return source, doctor.cures[0]


def place(source: Source, edit: Edit) -> tuple[str, str, str]:
    """Return the function of an edit, the loop around it, and what it adds beside what."""
    function, owner = source.function_of(edit.at), source.owner_of(edit.at)
    assert function is not None
    loop = ast.unparse(owner.iter) if isinstance(owner, ast.For) else ""
    name = source.words(edit.at).partition("(")[0]
    return function.name, loop, f"{edit.text.partition('(')[0]} {edit.how} {name}"


@pytest.mark.parametrize("places", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pair_that_says_that_a_tile_is_there(places: int, tmp_path: Path) -> None:
    """The set stands behind the store in the cube's loop, the wait before the load in the vector's."""
    source, edits = cured(without(SET_DONE, WAIT_DONE), places, tmp_path)
    assert [place(source, edit) for edit in edits] == [
        ("multiply", "range(TILES)", "asc.cross_core_set_flag after asc.fixpipe"),
        ("finish", "range(TILES)", "asc.cross_core_wait_flag before asc.data_copy"),
    ]
    assert [edit.text for edit in edits] == [
        SET_DONE.replace("DONE", "0"),
        WAIT_DONE.replace("DONE", "0"),
    ]


@pytest.mark.parametrize("places", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_pair_that_says_that_a_place_is_free(places: int, tmp_path: Path) -> None:
    """The set stands behind the load; the cube waits at its trip's end, since its first trip waits for nobody."""
    source, edits = cured(without(SET_FREE, WAIT_FREE), places, tmp_path)
    assert [place(source, edit) for edit in edits] == [
        ("finish", "range(TILES)", "asc.cross_core_set_flag after asc.data_copy"),
        ("multiply", "range(TILES)", "asc.cross_core_wait_flag after asc.cross_core_set_flag"),
    ]


@pytest.mark.parametrize(
    "call",
    [
        SET_FREE,
        WAIT_DONE,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (SET_DONE, WAIT_FREE)),
    ],
)
def test_one_of_a_pair(call: str, tmp_path: Path) -> None:
    """A call of the same name for the same flag comes back, into the same function."""
    text = without(call)
    _, (edit,) = cured(text, 2, tmp_path)
    assert edit.text.split(", ")[0] == call.split(", ", maxsplit=1)[0]
    (missing,) = (n for n, line in enumerate(text.splitlines(), 1) if line.strip() == "pass")
    assert abs(edit.line - missing) <= 4


@pytest.mark.parametrize(
    ("guard", "call", "edit"),
    [
        ("i >= places", WAIT_FREE, "before asc.fixpipe"),
        ("i + places < TILES", SET_FREE, "after asc.data_copy"),
    ],
)
def test_one_that_some_trips_go_without(guard: str, call: str, edit: str, tmp_path: Path) -> None:
    """With the condition gone, too, a new one says which trips have nobody to wait for, or nobody that waits."""
    text = without().replace(f"        if {guard}:\n            {call}\n", "")
    source, (made,) = cured(text, 2, tmp_path)
    right = f"if {guard.replace('places', '2')}:\n    {call}"
    assert made.text in (right, right.replace("MTE2", "MTE3"))
    assert place(source, made)[1] == "range(TILES)"
    assert f"{made.how} {source.words(made.at)}".startswith(edit)


MEETING = """
import numpy as np
from ascend_sim import asc

MIX = asc.runtime.config.KernelType.MIX_AIC_1_2
HALF = 256


@asc.jit(auto_sync=False, kernel_type=MIX)
def kernel(x, sums, z):
    if asc.ascend_is_aiv():
        asc.cross_core_set_flag(5, 2, asc.PipeID.PIPE_MTE3)
    else:
        asc.cross_core_wait_flag(5)
        produce(x, sums)
    {meeting}
    if asc.ascend_is_aiv():
        finish(sums, z)


def produce(x, sums):
    x_gm, sums_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    sums_gm.set_global_buffer(sums)
    left = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 256)
    a = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 256)
    b = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 256)
    c = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
    for number in range(2):
        asc.data_copy(left, x_gm, 256)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.load_data(a, left, asc.LoadData2DParams(0, 1, 1))
        asc.load_data(b, left, asc.LoadData2DParams(0, 1, 1))
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.mmad(c, a, b, asc.MmadParams(16, 16, 16))
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.fixpipe(sums_gm[number * 256 :], c, asc.FixpipeParamsV220(16, 16, 16, 16))
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def finish(sums, z):
    sums_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    sums_gm.set_global_buffer(sums + asc.get_sub_block_idx() * HALF)
    z_gm.set_global_buffer(z + asc.get_sub_block_idx() * HALF)
    t = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, HALF)
    asc.data_copy(t, sums_gm, HALF)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.data_copy(z_gm, t, HALF)
"""


def test_a_read_that_came_too_early(tmp_path: Path) -> None:
    """The vector cores read before the cube core has written: in order the other way round nothing would be right."""
    doctor, results = Doctor(), []
    for name, text in (("wrong", "pass"), ("right", "asc.sync_all(is_aiv_only=False)")):
        module = load(MEETING.replace("{meeting}", text), tmp_path / f"{name}.py")
        x, sums, z = (
            np.ones(256, np.float16),
            np.zeros(512, np.float32),
            np.zeros(512, np.float32),
        )
        with rehearsing(doctor.rehearse):
            found = module.kernel[1](x, sums, z).findings
        results.append(z)
        assert bool(found) == (name == "wrong")
        if found:
            assert {one.code for one in found} == {"race-blocks-war"}
            source = Source(str(tmp_path / "wrong.py"))
            cure = source.edited(doctor.cures[0])
            edited = load(ast.unparse(cure), tmp_path / "edited.py")
            z = np.zeros(512, np.float32)
            assert edited.kernel[1](x, np.zeros_like(sums), z).findings == []
            results.append(z)
    assert results[2].all()
    np.testing.assert_array_equal(results[1], results[2])
