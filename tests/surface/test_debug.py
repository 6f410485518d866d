"""What kernels print and mark: printf, dumps, time stamps, traps, measured parts; where the text goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc

ROOT = Path(sim.__file__).resolve().parent.parent


def _window(address: Any) -> asc.GlobalTensor:
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address)
    return tensor


def _printed(
    capsys: pytest.CaptureFixture[str], kernel: Callable[..., Any], *args: Any, **options: Any
) -> list[str]:
    sim.launch(kernel, *args, **options)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("%d|%i|%5d|%-5d|%05d", 7, -7, 7, 7, 7), "7|-7|    7|7    |00007"),
        (("%u %u", -1, 5), "4294967295 5"),
        (("%x %X %o %#x", 255, 255, 8, 16), "ff FF 10 0x10"),
        (("%ld %lld %lu %hd %zu", 1, 2, 3, 4, 5), "1 2 3 4 5"),
        (("%f %.2f %8.3f|%e %g", 0.5, 1.005, 2.5, 1500.0, 0.25), "0.500000 1.00    2.500|1.500000e+03 0.25"),
        (("%d %f", 2.9, 3), "2 3.000000"),
        (("%s is %c%%", "this", "a"), "this is a%"),
        (("%p", 32), "0x20"),
        (("no values",), "no values"),
        (("%d", np.int32(3)), "3"),
    ],
)  # fmt: skip
def test_printf_formats_as_c_does(
    capsys: pytest.CaptureFixture[str], arguments: Any, text: str
) -> None:
    assert _printed(capsys, lambda: asc.printf(*arguments)) == [f"[AIV-0] {text}"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("%d",), "0 values for 1 conversion"),
        (("%d", 1, 2), "2 values for 1 conversion"),
        (("%y", 1), "no conversion '%y'"),
        (("%d", "1"), "%d needs a number, got '1'"),
        ((3,), "the format is a string"),
    ],
)
def test_mistakes_with_printf(arguments: Any, words: str) -> None:
    with pytest.raises(sim.KernelError, match=words):
        sim.launch(lambda: asc.printf(*arguments))


def test_lines_of_blocks_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel() -> None:
        for word in ("one ", "two ", "three\nfour "):
            asc.printf(word)
        asc.printf("%d", asc.get_block_idx())

    lines = _printed(capsys, kernel, cores=3)
    for block in range(3):
        mine = [line for line in lines if line.startswith(f"[AIV-{block}] ")]
        assert mine == [f"[AIV-{block}] one two three", f"[AIV-{block}] four {block}"]


def test_a_mix_kernel_says_which_core_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(
        capsys, lambda: asc.printf("%d\n", asc.get_block_idx()), cores=2, kernel_type="MIX_AIC_1_2"
    )
    assert sorted(lines) == [
        "[AIC-0] 0", "[AIC-1] 1", "[AIV-0] 0", "[AIV-1] 1", "[AIV-2] 2", "[AIV-3] 3",
    ]  # fmt: skip


def test_dumps(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x: asc.GlobalAddress, words: asc.GlobalAddress) -> None:
        local = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 64, 64)
        asc.data_copy(local, _window(x), 64)
        asc.dump_tensor(local, 5, 3)  # waits for the copy by itself
        asc.dump_tensor(local, 6, 7, asc.ShapeInfo([2, 2, 2]))
        asc.dump_tensor(local, 7, 7, asc.ShapeInfo([1, 3]))
        asc.dump_tensor(_window(words)[1:], 8, 2)
        asc.dump_acc_chk_point(local, 9, 2, 2)
        local.print(18)

    x = np.arange(64).astype(np.float16) / 2
    lines = _printed(capsys, kernel, x, np.array([7, 8, 9], np.int32))
    assert [line.removeprefix("[AIV-0] ") for line in lines] == [
        "DumpTensor: desc=5, addr=0x40, data_type=float16, position=UB, dump_size=3",
        "[0.000000, 0.500000, 1.000000]",
        "DumpTensor: desc=6, addr=0x40, data_type=float16, position=UB, dump_size=7",
        "[[[0.000000, 0.500000],",
        "[1.000000, 1.500000]],",
        "[[2.000000, 2.500000],",
        "[3.000000, -]]]",
        "DumpTensor: desc=7, addr=0x40, data_type=float16, position=UB, dump_size=7",
        "[[0.000000, 0.500000, 1.000000]]",
        "DumpTensor: desc=8, addr=0x4, data_type=int32, position=GM, dump_size=2",
        "[8, 9]",
        "DumpAccChkPoint: index=9, offset=2, addr=0x44, data_type=float16, position=UB, dump_size=2",
        "[1.000000, 1.500000]",
        " ".join(f"{value / 2:f}" for value in range(16)),
        "8.000000 8.500000",
    ]


def test_a_dump_is_in_the_trace_and_waits() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        local = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64)
        asc.data_copy(local, _window(x), 64)
        asc.dump_tensor(local, 1, 0)

    run = sim.launch(kernel, np.zeros(64, np.float16))
    copy, barrier, dump = run.log.cores[0].items
    assert (barrier.name, dump.name) == ("pipe_barrier", "dump_tensor")
    assert dump.start >= copy.end
    assert run.findings == []


def test_without_numbers_there_is_nothing_to_dump(capsys: pytest.CaptureFixture[str]) -> None:
    local: Any = lambda: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64)  # noqa: E731
    lines = _printed(capsys, lambda: asc.dump_tensor(local(), 1, 4), numerics="off")
    assert lines == ["[AIV-0] dump_tensor UB[0:128]: there are no values with numerics off"]


@pytest.mark.parametrize(
    ("dump", "code"),
    [
        (lambda t: asc.dump_tensor(t, 1, 65), "tensor-out-of-bounds"),
        (lambda t: asc.dump_tensor(t, -1, 4), "desc-limit"),
        (lambda t: asc.dump_tensor(3, 1, 4), "wrong-operand"),  # type: ignore[arg-type]
        (lambda t: asc.dump_tensor(t, 1, 4, [2, 2]), "wrong-params"),  # type: ignore[arg-type]
        (lambda t: asc.dump_tensor(asc.GlobalTensor(), 1, 4), "unbound-tensor"),
        (lambda t: t.print(65), "data-len-limit"),
        (lambda t: t.to_file(3), "file-name"),
    ],
)  # fmt: skip
def test_mistakes_with_dumps(dump: Callable[[Any], Any], code: str) -> None:
    def kernel() -> None:
        dump(asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64))

    with pytest.raises(sim.KernelError) as caught:
        sim.launch(kernel)
    assert caught.value.finding.code == code


def test_a_tensor_in_a_file(tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float16)

    def kernel(x: asc.GlobalAddress) -> None:
        local = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64)
        asc.data_copy(local, _window(x), 64)
        assert local.to_file(str(tmp_path / "tensor.bin")) == 0

    sim.launch(kernel, x)
    assert np.array_equal(np.fromfile(tmp_path / "tensor.bin", np.float16), x)


def test_time_stamps_and_places(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def kernel() -> None:
        for _ in range(2):
            seen.append(asc.get_program_counter())
            asc.print_time_stamp(4)
        seen.append(asc.get_program_counter())

    run = sim.launch(kernel)
    assert seen[0] == seen[1] != seen[2]
    stamps = [line.partition("timeStamp is ")[2] for line in capsys.readouterr().out.splitlines()]
    cycles = [int(stamp.partition(",")[0]) for stamp in stamps]
    items = [item for item in run.log.cores[0].items if item.name == "print_time_stamp"]
    assert [item.call.detail() for item in items] == ["id:4", "id:4"]  # type: ignore[union-attr]
    assert cycles[0] < cycles[1] <= run.cycles
    assert all(item.start >= cycle for item, cycle in zip(items, cycles, strict=True))


def test_a_measured_part_is_a_phase() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        local = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64)
        asc.data_copy(local, _window(x), 64)
        asc.metrics_prof_start()
        asc.data_copy(local[32:], _window(x), 32)
        asc.metrics_prof_stop()

    phases = sim.launch(kernel, np.zeros(64, np.float16)).summary["phases"]
    assert phases["metrics_prof"]["bytes"]["gm_read"] == 64


def test_a_trap_stops_the_kernel_where_it_stands() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        local = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 64)
        asc.data_copy(local, _window(x), 64)
        asc.set_flag(asc.HardEvent.MTE2_S)
        asc.wait_flag(asc.HardEvent.MTE2_S)
        asc.trap()  # here
        asc.data_copy(_window(z), local, 64)

    z = np.zeros(64, np.float16)
    with pytest.raises(sim.KernelError, match=r"stopped itself with trap\(\)") as caught:
        sim.launch(kernel, np.ones(64, np.float16), z)
    finding = caught.value.finding
    assert (finding.kind, finding.code) == ("STATE", "trap")
    assert (
        "asc.trap()  # here"
        in Path(finding.file).read_text(encoding="utf-8").splitlines()[finding.line - 1]
    )
    assert caught.value.run.cycles > 0
    assert not z.any()


def test_under_json_text_goes_to_standard_error(tmp_path: Path) -> None:
    program = tmp_path / "talk.py"
    program.write_text(
        "import asc\n\n@asc.jit\ndef talk():\n    asc.printf('hello %d', asc.get_block_idx())\n\n"
        "if __name__ == '__main__':\n    talk[2]()\n    print('done')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "ascend_sim", "run", str(program), "--json"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["op"] == "talk"
    assert "[AIV-0] hello 0\n[AIV-1] hello 1\ndone\n" in done.stderr
