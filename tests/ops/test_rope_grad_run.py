"""`rope_grad` on the simulator: numbers, counts and bytes against closed forms, findings, options."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import (
    BoundsError,
    CapacityError,
    HostError,
    KernelError,
    QueueError,
    exit_code,
)
from ascend_sim.trace import Item, Kind
from isa.types import Pipe
from ops import Context, OperationError, create_operation, find_operator
from ops.rope_grad import reference
from ops.rope_grad.inputs import Shape, default_inputs
from ops.rope_grad.kernel import rope_grad
from tests.ops.rope_grad_counts import HEAD_SIZE, counts

CHIPS = ("ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4")


def run(
    options: dict[str, Any] | None = None,
    seed: int = 0,
    input_file: Path | None = None,
    **context: Any,
) -> Any:
    return find_operator("rope_grad").run(options or {}, Context(**context), seed, input_file)


def assert_counts(
    result: Any, seq_lens: list[int], hidden: int, cores: int, max_process_num: int = 12288
) -> None:
    """Instructions, bytes, work, flags and barriers are those of the closed form."""
    wanted = counts(seq_lens, hidden, cores, max_process_num)
    summary = result.summary
    assert summary["block_dim"] == wanted.blocks
    instructions = summary["instructions"]["aiv"]
    assert instructions["MTE2"] == wanted.mte2
    assert instructions["V"] == wanted.vector
    assert instructions["MTE3"] == wanted.mte3
    assert summary["bytes"]["gm_read"] == summary["bytes"]["aiv"]["MTE2"] == wanted.read_bytes
    assert summary["bytes"]["gm_write"] == summary["bytes"]["aiv"]["MTE3"] == wanted.write_bytes
    items = [item for core in result.log.cores for item in core.items]
    assert flags(items, Kind.SET_FLAG) == flags(items, Kind.WAIT_FLAG) == wanted.flags
    barriers = Counter(item.pipe for item in items if item.kind is Kind.BARRIER)
    assert barriers == {Pipe.V: wanted.vector_barriers, Pipe.S: wanted.all_barriers}
    assert sum(item.name == "get_value" for item in items) == wanted.scalar_loads


def flags(items: list[Item], kind: Kind) -> Counter[str]:
    return Counter(item.event.name for item in items if item.kind is kind and item.event)


# Shape by shape: lengths, hidden size, chip, MAX_PROCESS_NUM, BUFFER_NUM.
QUICK = [
    ([1], 128, "ascend910b1", 12288, 1),
    ([95], 256, "ascend910b2", 12288, 1),
    ([96], 384, "ascend910b3", 12288, 1),
    ([97], 640, "ascend910b4", 12288, 1),
    ([2, 1, 4, 4], 128, "ascend910b1", 12288, 1),
    ([97, 96, 95, 1], 128, "ascend910b1", 4096, 2),
    ([200], 1280, "ascend910b1", 7552, 2),
    ([300, 1], 128, "ascend910b1", 14016, 1),
    ([3] * 32, 256, "ascend910b3", 12288, 1),
    ([5], 6144, "ascend910b1", 12288, 1),
    ([7], 6144, "ascend910b4", 129, 1),
]
TILES = ((12288, 1), (14016, 1), (7552, 2), (4096, 2), (1000, 1))
SIZES = [
    (lengths, hidden)
    for lengths in ([1], [95, 96, 97], [2048], [2048, 1024, 37, 1], list(range(1, 33)))
    for hidden in (128, 1280, 3072, 6144)
]
# Every size on every chip; the tiles take turns.
SLOW = [
    (lengths, hidden, chip, *TILES[(size + turn) % len(TILES)])
    for size, (lengths, hidden) in enumerate(SIZES)
    for turn, chip in enumerate(CHIPS)
    if sum(lengths) * hidden <= 2048 * 3072
]


@pytest.mark.parametrize(
    ("lengths", "hidden", "chip", "tile", "buffers"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_numbers_and_counts(
    lengths: list[int], hidden: int, chip: str, tile: int, buffers: int
) -> None:
    tiling = {"MAX_PROCESS_NUM": tile, "BUFFER_NUM": buffers}
    result = run({"seq": lengths, "hidden": hidden}, chip=chip, tiling=tiling)
    cores = result.chip.cores.aiv
    assert_counts(result, lengths, hidden, cores, tile)
    numerics = result.summary["numerics"]
    assert (numerics["bit_exact"], numerics["mismatches"], numerics["max_abs_error"]) == (
        True,
        0,
        0.0,
    )
    heads = hidden // HEAD_SIZE
    assert numerics["not_written"] == 2 * sum(lengths) * HEAD_SIZE * max(0, heads - cores)
    wrong = {finding.kind for finding in result.findings} - {"INFO", "PERF"}
    assert wrong == (set() if heads <= cores else {"COVERAGE"})


def test_numbers_do_not_depend_on_how_they_are_computed() -> None:
    options = {"seq": [130, 5, 97], "hidden": 384}
    first = run(options, seed=3)
    for context in (
        {"tiling": {"MAX_PROCESS_NUM": 129}},
        {"tiling": {"MAX_PROCESS_NUM": 7552, "BUFFER_NUM": 2}},
        {"chip": "ascend910b4"},
        {"chip": "toy"},
        {"cores": 3},
        {"l2": "warm"},
        {"numerics": "exact"},
        {"auto_sync": True},
        {"checks": "off"},
        {"checks": "error"},
    ):
        other = run(options, seed=3, **context)
        for name in ("q_grad", "k_grad"):
            np.testing.assert_array_equal(first.outputs[name], other.outputs[name])


def test_runs_repeat_to_the_cycle() -> None:
    options = {"seq": [130, 5], "hidden": 256}
    first, second = run(options), run(options)
    assert first.cycles == second.cycles
    assert first.summary == second.summary
    assert run(options, numerics="off").cycles == first.cycles


def test_default_run() -> None:
    result = run()
    assert_counts(result, [2048, 1024, 37, 1], 1280, 48)
    assert result.summary["op"] == "rope_grad"
    assert result.exit_code == 0
    assert result.summary["numerics"]["bit_exact"]
    assert {finding.code for finding in result.findings} == {
        "not-the-adjoint", "work-by-every-head", "muls-repeat-stride",
    }  # fmt: skip


def test_two_buffers_overlap() -> None:
    """With one buffer each stage waits for the one before; with two, tiles of the same size overlap."""
    options = {"seq": [1024], "hidden": 1280}
    one, two = (
        run(options, tiling={"MAX_PROCESS_NUM": 7552, "BUFFER_NUM": number}) for number in (1, 2)
    )
    assert two.cycles < one.cycles
    assert two.stalls()["buffer"] < one.stalls()["buffer"]


def test_heads_beyond_the_cores_stay_unwritten() -> None:
    result = run({"seq": [3, 2], "hidden": 8192}, chip="ascend910b3")
    for name in ("q_grad", "k_grad"):
        output = result.outputs[name]
        assert np.isnan(output[:, 5120:]).all()
        assert not np.isnan(output[:, :5120]).any()
    found = [finding for finding in result.findings if finding.kind == "COVERAGE"]
    assert [(finding.code, finding.tensor) for finding in found] == [
        ("heads-not-computed", "q_grad"),
        ("heads-not-computed", "k_grad"),
    ]
    assert "columns 5120-8191 (heads 40-63) of rows 0-4" in found[0].message
    assert result.summary["numerics"]["not_written"] == 2 * 5 * 3072
    assert result.summary["numerics"]["bit_exact"] is True
    assert result.exit_code == 2


def test_fewer_cores_leave_more_heads_out() -> None:
    result = run({"seq": [4], "hidden": 512}, cores=3)
    assert result.summary["block_dim"] == 3
    found = [finding for finding in result.findings if finding.kind == "COVERAGE"]
    assert "columns 384-511 (heads 3) of rows 0-3" in found[0].message


def test_rows_beyond_the_samples_stay_unwritten() -> None:
    result = run({"seq": [4, 3], "hidden": 256, "rows": 10})
    found = [finding for finding in result.findings if finding.kind == "COVERAGE"]
    assert [finding.code for finding in found] == ["rows-not-computed"] * 2
    assert "rows 7-9 were never written" in found[0].message
    assert np.isnan(result.outputs["k_grad"][7:]).all()
    assert result.summary["numerics"]["bit_exact"] is True
    assert result.exit_code == 2


def test_heads_and_rows_left_out_together() -> None:
    result = run({"seq": [4], "hidden": 512, "rows": 6}, cores=3)
    found = [finding for finding in result.findings if finding.tensor == "q_grad"]
    assert [(finding.kind, finding.code) for finding in found] == [
        ("COVERAGE", "heads-not-computed"),
        ("COVERAGE", "rows-not-computed"),
    ]
    assert result.summary["numerics"]["not_written"] == 2 * (4 * 128 + 2 * 512)


def test_more_samples_than_rows() -> None:
    with pytest.raises(BoundsError) as caught:
        run({"seq": [4, 3], "hidden": 256, "rows": 5})
    assert caught.value.finding.kind == "BOUNDS"
    assert "qSeqLen adds up to 7 and the gradients have 5 rows" in caught.value.finding.message
    assert caught.value.finding.message == str(caught.value)
    assert exit_code(caught.value.run.findings) == 4


def test_unwritten_places_with_checks_off_and_with_errors() -> None:
    options = {"seq": [4], "hidden": 512, "rows": 6}
    quiet = run(options, cores=3, checks="off")
    assert quiet.exit_code == 0
    assert quiet.numerics["bit_exact"] is True
    assert quiet.numerics["not_written"] == 2 * (4 * 128 + 2 * 512)
    with pytest.raises(KernelError, match="columns 384-511") as caught:
        run(options, cores=3, checks="error")
    assert caught.value.finding.kind == "COVERAGE"
    assert caught.value.run.cycles == quiet.cycles


def test_kernel_side_refuses_flat_outputs() -> None:
    """The host side checks no output shapes; the kernel takes 2-d tensors only."""
    inputs = default_inputs(Shape((2,), 128, 2, 2), 0)
    operation = create_operation("RopeGradOperation", {"qSeqLen": [2]})
    with pytest.raises(OperationError, match="RopeGradKernel does not support") as caught:
        operation.setup(inputs, [np.zeros(256, np.float16)] * 2, Context())
    assert (caught.value.status, caught.value.stage) == ("ERROR_INVALID_PARAM", "setup")


def test_kernel_stays_inside_the_compiled_subset() -> None:
    """pyasc compiles functions, loops and branches; the operator's kernel file uses nothing else."""
    path = Path(inspect.getfile(rope_grad.function))
    allowed = (
        ast.Module, ast.Expr, ast.Constant, ast.ImportFrom, ast.alias, ast.FunctionDef, ast.arguments, ast.arg,
        ast.Attribute, ast.Subscript, ast.Slice, ast.Name, ast.Load, ast.Store, ast.Call, ast.keyword,
        ast.Assign, ast.AugAssign, ast.For, ast.If, ast.Compare, ast.Gt, ast.BinOp, ast.UnaryOp, ast.USub,
        ast.Add, ast.Sub, ast.Mult, ast.FloorDiv,
    )  # fmt: skip
    strange = {
        f"line {getattr(node, 'lineno', '?')}: {type(node).__name__}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if not isinstance(node, allowed)
    }
    assert strange == set()
    assert "bfloat16" not in path.read_text(encoding="utf-8")


def test_buffers_that_do_not_fit() -> None:
    with pytest.raises(CapacityError) as caught:
        run({"seq": [4], "hidden": 128}, tiling={"BUFFER_NUM": 2})
    message = str(caught.value)
    assert (
        "MAX_PROCESS_NUM that fits is 14016 with BUFFER_NUM 1 and 7552 with BUFFER_NUM 2" in message
    )
    assert "13 buffers of 24576 bytes, 319488 in all" in message
    assert caught.value.finding.message == message
    assert [finding.message for finding in caught.value.run.findings] == [message]
    assert exit_code(caught.value.run.findings) == 4
    assert caught.value.run.summary["findings"][0]["message"] == message


@pytest.mark.parametrize(("buffers", "largest"), [(1, 14016), (2, 7552)])
def test_largest_tile_fits_and_the_next_does_not(buffers: int, largest: int) -> None:
    options = {"seq": [130], "hidden": 128}
    run(options, tiling={"MAX_PROCESS_NUM": largest, "BUFFER_NUM": buffers})
    with pytest.raises(CapacityError):
        run(options, tiling={"MAX_PROCESS_NUM": largest + 1, "BUFFER_NUM": buffers})


def test_three_buffers_need_too_many_events() -> None:
    with pytest.raises(QueueError) as caught:
        run({"seq": [4], "hidden": 128}, tiling={"MAX_PROCESS_NUM": 1024, "BUFFER_NUM": 3})
    assert caught.value.finding.kind == "QUEUE"


def test_tile_of_the_head_size_is_refused() -> None:
    with pytest.raises(HostError) as caught:
        run({"seq": [4], "hidden": 128}, tiling={"MAX_PROCESS_NUM": 128})
    assert exit_code([caught.value.finding]) == 1


def test_without_numerics_there_is_only_time() -> None:
    result = run({"seq": [130], "hidden": 256}, numerics="off")
    assert_counts(result, [130], 256, 48)
    assert result.numerics is None
    assert np.isnan(result.outputs["q_grad"]).all()


def test_results_may_replace_the_gradients() -> None:
    """The library allows it: every tile is read before it is written."""
    lengths = [130, 3]
    inputs = default_inputs(Shape(tuple(lengths), 256, 130, 133), 1)
    expected = reference.library(*inputs, lengths)
    operation = create_operation("RopeGradOperation", {"qSeqLen": lengths})
    context = Context()
    operation.setup(inputs, inputs[:2], context)
    result = operation.execute(inputs, inputs[:2], context)
    assert result.summary["numerics"]["bit_exact"] is True
    np.testing.assert_array_equal(inputs[1], expected[1])


def test_execute_again_with_other_data() -> None:
    lengths = [5]
    operation = create_operation("RopeGradOperation", {"qSeqLen": lengths})
    context = Context()
    for seed in (1, 2):
        inputs = default_inputs(Shape((5,), 128, 5, 5), seed)
        outputs = [np.empty_like(inputs[0]) for _ in range(2)]
        operation.setup(inputs, outputs, context)
        assert operation.execute(inputs, outputs, context).numerics["bit_exact"]
    assert operation.runner is not None
    assert operation.runner.tiling_count == 1


def test_nan_inputs() -> None:
    shape = Shape((3,), 128, 3, 3)
    inputs = default_inputs(shape, 0)
    inputs[0][1], inputs[2][2] = np.nan, np.inf
    outputs = [np.zeros_like(inputs[0]) for _ in range(2)]
    operation = create_operation("RopeGradOperation", {"qSeqLen": [3]})
    context = Context()
    operation.setup(inputs, outputs, context)
    result = operation.execute(inputs, outputs, context)
    assert result.numerics["bit_exact"] is True
    assert np.isnan(outputs[0][1]).all()


@pytest.mark.slow
def test_memory_of_a_large_run() -> None:
    """Sixteen samples of 2048 tokens: 336 MB of tensors, less than 900 MB in all."""
    program = (
        "import resource\n"
        "from ops import Context, find_operator\n"
        "run = find_operator('rope_grad').run({'seq': [2048] * 16}, Context())\n"
        "assert run.summary['numerics']['bit_exact']\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert int(done.stdout) < 900 * 1024


# Barrier of a tile that is left out: the kinds of findings with one buffer and with two. The first and the fourth
# order nothing. The fifth keeps the next tile's first write of `work` behind this tile's last read of it; with one
# buffer the queues' flags do so as well.
BARRIERS = [
    (0, set(), set()),
    (1, {"RACE", "NUMERIC"}, {"RACE", "NUMERIC"}),
    (2, {"RACE", "NUMERIC"}, {"RACE", "NUMERIC"}),
    (3, set(), set()),
    (4, set(), {"RACE"}),
]


@pytest.mark.parametrize(("dropped", "with_one", "with_two"), BARRIERS)
def test_what_each_barrier_is_for(
    dropped: int,
    with_one: set[str],
    with_two: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Path(inspect.getfile(rope_grad.function)).read_text(encoding="utf-8").splitlines()
    barriers = [row for row, line in enumerate(lines) if "pipe_barrier(asc.PipeID.PIPE_V)" in line]
    assert len(barriers) == 5
    del lines[barriers[dropped]]
    path = tmp_path / "kernel_without_a_barrier.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("ops.rope_grad.kernel_side.rope_grad", module.rope_grad)
    for buffer_num, expected in ((1, with_one), (2, with_two)):
        tiling = {"MAX_PROCESS_NUM": 4096, "BUFFER_NUM": buffer_num}
        result = run({"seq": [100], "hidden": 128}, tiling=tiling)
        assert {finding.kind for finding in result.findings} - {"INFO", "PERF"} == expected
