"""`ascend-sim run` and `check` on an operator by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SMALL = ("--seq", "5,3", "--hidden", "256")


def test_an_operator_runs_by_name_with_its_own_options(command) -> None:
    result = command("run", "rope_grad", *SMALL, "--json")
    assert result.code == 0
    summary = json.loads(result.out)
    assert (summary["op"], summary["chip"], summary["block_dim"]) == ("rope_grad", "ascend910b1", 2)
    assert summary["numerics"]["bit_exact"] is True
    # Two samples of one tile each, in both blocks: four loads, five vector steps, two stores.
    assert summary["instructions"]["aiv"]["MTE2"] == 2 * 2 * 4
    assert summary["instructions"]["aiv"]["V"] == 2 * 2 * 5
    assert summary["instructions"]["aiv"]["MTE3"] == 2 * 2 * 2
    assert Path("runs/rope_grad-1/trace.json").is_file()


def test_options_may_stand_before_the_name_and_with_an_equals_sign(command) -> None:
    result = command("run", "--seq=4", "--hidden", "128", "--json", "rope_grad")
    assert result.code == 0
    assert json.loads(result.out)["block_dim"] == 1


def test_tiling_constants_change_the_run(command) -> None:
    words = ("run", "rope_grad", "--seq", "192", "--hidden", "128", "--json")
    one = json.loads(command(*words).out)
    two = json.loads(command(*words, "--set", "MAX_PROCESS_NUM=6144", "--set", "BUFFER_NUM=2").out)
    assert one["instructions"]["aiv"]["V"] == 2 * 5
    assert two["instructions"]["aiv"]["V"] == 4 * 5


def test_fewer_cores_leave_heads_out_and_exit_2(command) -> None:
    result = command("run", "rope_grad", *SMALL, "--cores", "1")
    assert result.code == 2
    assert "COVERAGE heads-not-computed" in result.out
    assert "1 finding" in result.out or "2 findings" in result.out


def test_buffers_that_do_not_fit_exit_4(command) -> None:
    result = command("run", "rope_grad", *SMALL, "--set", "MAX_PROCESS_NUM=20000")
    assert result.code == 4
    assert "CAPACITY" in result.out
    assert Path("runs/rope_grad-1/summary.json").is_file()


def test_check_of_an_operator(command) -> None:
    result = command("check", "rope_grad", *SMALL)
    assert result.code == 0
    assert "INFO not-the-adjoint" in result.out
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rope_grd",), "no operator is called 'rope_grd'; did you mean 'rope_grad'?"),
        (("rope_grad", "--chip", "ascend910b9"), "no chip 'ascend910b9'; did you mean"),
        (("rope_grad", "--set", "BUFER_NUM=2"), "did you mean 'BUFFER_NUM'?"),
        (("rope_grad", "--set", "BUFFER_NUM"), "--set takes NAME=VALUE"),
        (("rope_grad", "--set", "BUFFER_NUM=two"), "it must be an integer above 0"),
        (("rope_grad", "--hiden", "128"), "no such option: --hiden; did you mean --hidden?"),
        (("rope_grad", "--chp=toy"), "no such option: --chp; did you mean --chip?"),
        (("rope_grad", "--hidden"), "option --hidden needs a value"),
        (("rope_grad", "--hidden", "x"), "--hidden is 'x'; it must be an integer above 0"),
        (("rope_grad", "--hidden", "100"), "has hidden size 100; it must be a multiple of 128"),
        (("rope_grad", "--numerics", "of"), "--numerics is 'of'; did you mean 'off'?"),
        (("rope_grad", "--checks", "all"), "(allowed: error, collect, off)"),
        (("rope_grad", "--l2", "hot"), "(allowed: cold, warm, dirty)"),
        (("rope_grad", "--auto-sync", "yes"), "(allowed: on, off)"),
        (("rope_grad", "--cores", "0"), "--cores"),
        (("rope_grad", "--seed", "x"), "--seed"),
        (("rope_grad", "--kernel", "x"), "rope_grad is an operator"),
        (("rope_grad", "more"), "takes no further arguments, and got more"),
        (("rope_grad", "--input", "none.npz"), "none.npz"),
        (("kernel.py",), "no such file: kernel.py"),
        ((), "OP_OR_FILE"),
    ],
)
def test_usage_errors_exit_1_with_one_message_and_nothing_else(command, words, message) -> None:
    result = command("run", *words)
    assert result.code == 1
    assert message in result.err
    assert result.out == ""
    assert "Traceback" not in result.err
    assert "\n  at " not in result.err  # no line of the simulator's
    assert not Path("runs").exists()


def test_a_file_that_is_not_there_suggests_the_one_beside_it(command, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").touch()
    assert "did you mean 'kernels.py'?" in command("run", "kernel.py").err


def test_an_operation_that_refuses_in_a_program_names_the_programs_line(
    command, tmp_path: Path
) -> None:
    program = tmp_path / "host.py"
    program.write_text(
        "import numpy as np\n\nfrom ops import create_operation\n\n"
        'operation = create_operation("RopeGradOperation", {"qSeqLen": [8]})\n'
        "operation.infer_shape([np.zeros((8, 200), np.float16)] * 4)\n"
    )
    result = command("run", str(program))
    assert result.code == 1
    assert result.err.rstrip().endswith(f"must be a multiple of 128\n  at {program}:6")
