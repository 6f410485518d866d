"""`ascend-sim run` and `check` on a Python file with kernels."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_sim.report.folder import FILES

Write = Callable[[str], str]
GOOD = 'run = scale[2](x, z, 512)\nprint("sum", int(z.sum(dtype=np.float32)))'


def folder(path: str) -> list[str]:
    return sorted(entry.name for entry in Path(path).iterdir())


def test_a_program_runs_prints_its_summary_and_leaves_a_run_folder(command, program) -> None:
    result = command("run", program(GOOD), "--chip", "toy")
    assert result.code == 0
    assert result.err == ""
    assert result.out.startswith("sum 2048\nscale on toy, 2 blocks, L2 cold\n")
    assert "Files: runs/scale-1: report.html" in result.out
    assert folder("runs/scale-1") == sorted(FILES)


def test_json_leaves_standard_output_to_the_summary(command, program) -> None:
    result = command("run", program(GOOD), "--chip", "toy", "--json")
    summary = json.loads(result.out)
    assert (summary["schema_version"], summary["op"], summary["chip"]) == (1, "scale", "toy")
    assert result.err == "sum 2048\n"
    assert summary == json.loads(Path("runs/scale-1/summary.json").read_text(encoding="utf-8"))


def test_quiet_prints_no_summary_but_writes_it(command, program) -> None:
    result = command("run", program("scale[1](x, z, 1024)"), "-q", "--out", "here")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert folder("here") == sorted(FILES)


@pytest.mark.parametrize(
    ("main", "code", "words"),
    [
        ("racy[1](x, 1024)", 2, "RACE"),
        ("stuck[1](x)", 3, "DEADLOCK"),
        ("too_big[1](x)", 4, "CAPACITY"),
    ],
)
def test_findings_decide_the_exit_code_and_the_summary_is_there_all_the_same(
    command, program, main: str, code: int, words: str
) -> None:
    result = command("run", program(main), "--out", "run")
    assert result.code == code
    assert words in result.out
    assert "Traceback" not in result.out + result.err
    # A kernel that stopped has no recording: there is no whole run to replay.
    missing = set(FILES) - set(folder("run"))
    assert missing == ({"recording.bin"} if code > 2 else set())
    quiet = command("run", program(main), "--json", "--out", "run")
    assert quiet.code == code
    kinds = [finding["kind"] for finding in json.loads(quiet.out)["findings"]]
    assert words in kinds
    assert words.lower() in quiet.err.lower() or "bytes of UB" in quiet.err


def test_a_kernel_that_stops_says_so_once(command, program) -> None:
    result = command("run", program("stuck[1](x)"), "--chip", "toy")
    assert result.out.count("nothing sets it") == 1
    assert "nothing sets it" not in result.err
    assert "stopped at cycle" in result.err and "by the DEADLOCK finding above" in result.err


def test_an_exception_in_the_kernel_shows_the_users_own_lines(command, program) -> None:
    result = command("run", program("crashes[1](x)"))
    assert result.code == 1
    assert "the program raised an exception" in result.err
    assert "in index_of\n" in result.err and "in crashes\n" in result.err
    assert result.err.rstrip().endswith("IndexError: list index out of range")
    for inside in ("ascend_sim", "simpy", "runpy"):
        assert f"{inside}{'/' if inside != 'runpy' else '.py'}" not in result.err


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("scale[1](x, z)", "scale takes x, z, n: missing a required argument: 'n'"),
        ("scale(x, z, 1024)", "scale is a kernel: launch it with scale[blocks](…)"),
    ],
)
def test_a_launch_that_cannot_begin_names_file_and_line(command, program, main, message) -> None:
    text = Path(program(main)).read_text(encoding="utf-8")
    result = command("check", "kernels.py")
    assert result.code == 1
    line = text.splitlines().index(main) + 1
    assert message in result.err
    assert result.err.endswith(f"at kernels.py:{line}\n")


def test_a_misspelt_member_of_an_enumeration_gets_the_nearest_name(command, program) -> None:
    result = command("check", program("asc.HardEvent.MTE2_W"))
    assert result.code == 1
    assert "asc.HardEvent has no such member; did you mean 'MTE2_V'?" in result.err
    assert "enum.py" not in result.err


def test_a_syntax_error_names_file_and_line(command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n", encoding="utf-8")
    result = command("run", "broken.py")
    assert result.code == 1
    assert result.err.startswith("ascend-sim: the program is no valid Python:\n")
    assert 'broken.py", line 2' in result.err
    assert "SyntaxError" in result.err


def test_the_programs_own_exit(command, program) -> None:
    good = command("run", program("scale[1](x, z, 1024)\nsys.exit(0)"), "-q")
    assert (good.code, good.err) == (0, "")
    bad = command("run", program("scale[1](x, z, 1024)\nsys.exit('no luck')"), "-q")
    assert (bad.code, bad.err) == (1, "ascend-sim: the program ended itself: sys.exit('no luck')\n")


def test_arguments_after_two_dashes_are_the_programs(command, program) -> None:
    main = "print(sys.argv[1:])\nscale[1](x, z, 1024)"
    result = command("run", program(main), "--chip", "toy", "--", "--rows", "4")
    assert result.out.startswith("['--rows', '4']\n")


def test_of_several_launches_the_last_is_reported_or_the_chosen_one(command, program) -> None:
    name = program("scale[1](x, z, 1024)\nracy[1](x, 1024)\nscale[2](x, z, 512)")
    result = command("run", name, "--json", "--out", "run")
    assert json.loads(result.out)["block_dim"] == 2
    assert result.code == 2, "what was found in another launch is not passed over"
    assert "3 launches; reported is the last of scale" in result.err
    assert result.err.count("also found in racy: RACE") >= 1
    chosen = command("run", name, "--json", "--kernel", "racy", "--out", "run")
    assert json.loads(chosen.out)["op"] == "racy"
    wrong = command("run", name, "--kernel", "scal")
    assert wrong.code == 1
    assert "no kernel 'scal'; did you mean 'scale'? (it launched: scale, racy)" in wrong.err


def test_a_program_without_a_launch_is_told_so(command, program) -> None:
    result = command("run", program("pass"))
    assert result.code == 1
    assert "launched no kernel" in result.err


def test_options_hold_for_the_programs_launches_and_are_gone_afterwards(command, program) -> None:
    name = program("scale[4](x, z, 256)\nprint(z[0])")
    listeners = list(importlib.import_module("ascend_sim.launch").on_run)
    result = command(
        "run", name, "--chip", "toy", "--numerics", "off", "--l2", "warm", "--cores", "2", "--json"
    )
    summary = json.loads(result.out)
    assert (summary["chip"], summary["l2_start"]) == ("toy", "warm")
    assert result.err.startswith("0.0\n"), "with the numbers off nothing is computed"
    assert list(summary["pipes"]) == ["core0.aiv0", "core0.aiv1"]
    assert importlib.import_module("ascend_sim.launch").defaults.options == {}
    assert importlib.import_module("ascend_sim.launch").on_run == listeners


def test_an_option_that_the_program_overrules_is_not_ignored_in_silence(command, program) -> None:
    main = "import ascend_sim\nascend_sim.launch(scale, x, z, 1024, chip='toy', l2='warm')"
    result = command("run", program(main), "--chip", "ascend910b2", "--l2", "warm", "--json")
    assert json.loads(result.out)["chip"] == "toy"
    assert "--chip had no effect" in result.err
    assert "--l2" not in result.err


def test_nothing_of_the_program_stays_behind(command, program) -> None:
    before = (list(sys.argv), list(sys.path), "asc" in sys.modules)
    command("run", program("crashes[1](x)"))
    command("run", program(GOOD), "-q")
    assert (sys.argv, sys.path, "asc" in sys.modules) == before


def test_a_program_imports_what_stands_beside_it(command, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "beside_it.py").write_text("VALUE = 42\n", encoding="utf-8")
    (tmp_path / "deep" / "main.py").write_text(
        "import beside_it\nprint(beside_it.VALUE)\n", encoding="utf-8"
    )
    assert command("run", "deep/main.py").out == "42\n"


def test_the_seed_fixes_the_data_that_the_program_draws(command, program) -> None:
    name = program("print(np.random.rand())\nscale[1](x, z, 1024)")
    draws = [command("run", name, "--seed", seed).out.splitlines()[0] for seed in ("1", "1", "2")]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("options", [("--input", "x.npz"), ("--seq", "4"), ("--hidden=128",)])
def test_options_of_operators_are_refused_for_a_file(command, program, options) -> None:
    result = command("run", program(GOOD), *options)
    assert result.code == 1
    assert f"{options[0].partition('=')[0]}: an option for operators" in result.err
    assert "sum" not in result.out


def test_out_is_refused_before_the_work(command, program, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "thesis.txt").touch()
    result = command("run", program(GOOD), "--out", "docs")
    assert result.code == 1
    assert "is no run folder" in result.err
    assert result.out == "", "the program must not have run"


def test_check_prints_findings_and_writes_nothing(command, program) -> None:
    result = command("check", program("racy[1](x, 1024)"))
    assert result.code == 2
    assert "RACE race-raw  kernels.py:" in result.out
    assert "Pipes of" not in result.out
    assert not Path("runs").exists()
    good = command("check", program("scale[1](x, z, 1024)"))
    assert good.code == 0
    assert good.out.startswith("scale: no findings in ")
    stopped = command("check", program("stuck[1](x)"))
    assert stopped.code == 3
    assert "DEADLOCK" in stopped.out


def test_constants_may_be_set_several_at_once(command, program) -> None:
    name = program("M, N = 2, 512\nBLOCKS: int = 1\nprint(M, N, BLOCKS)\nscale[BLOCKS](x, z, N)")
    result = command("run", name, "--set", "N=256", "--set", "BLOCKS=4", "--chip", "toy", "-q")
    assert (result.code, result.out) == (0, "2 256 4\n")
    result = command("run", name, "--set", "MM=1", "--chip", "toy")
    assert result.code == 1
    assert "(it has: M, N, BLOCKS)" in result.err
