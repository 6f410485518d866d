"""What `ascend-sim check` can be asked for beside the checks of one run."""

from __future__ import annotations

from typing import Any


def test_hostile_timings(command: Any, program: Any) -> None:
    good = command("check", program("scale[2](x, z, 512)"), "--adversary", "3")
    assert good.code == 0
    assert good.out.endswith(
        "3 hostile timings of 1 launch: results and findings are the same under each\n"
    )


def test_hostile_timings_break_a_race(command: Any, program: Any) -> None:
    wrong = command("check", program("racy[1](x, 1024)"), "--adversary", "2")
    assert wrong.code == 2 and "race-raw" in wrong.out and "hostile timing" in wrong.out


def test_hostile_timings_need_something_to_compare(command: Any, program: Any) -> None:
    name = program("scale[2](x, z, 512)")
    for option in ("--numerics", "--checks"):
        refused = command("check", name, "--adversary", "3", option, "off")
        assert refused.code == 1 and f"leave out {option} off" in refused.err
    assert command("check", name, "--adversary", "0").code == 1


def test_coverage(command: Any, program: Any) -> None:
    half = command("check", program("scale[1](x, z, 512)"), "--coverage")
    assert "x, 1024 of float16\n  read           elements 0 to 511 (512 elements)\n" in half.out
    assert "  never written  elements 512 to 1023 (512 elements)\n" in half.out
    assert "    core0.aiv0   writes elements 0 to 511\n" in half.out
    refused = command("check", program("scale[1](x, z, 512)"), "--coverage", "--checks", "off")
    assert refused.code == 1 and "leave out --checks off" in refused.err
