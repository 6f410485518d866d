"""The vendor's other files, read by their importers' rules; their sums are the run's."""

from __future__ import annotations

import csv
import json
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import test_real_runs

from ascend_sim.report.folder import write_run_folder, write_vendor
from ascend_sim.report.vendor import CODE_COLUMNS, INSTRUCTION_COLUMNS, PIPE_PID, block
from ascend_sim.run import Run
from ascend_sim.trace import Kind


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    run = test_real_runs.launch(chip="toy", num=2, tiles=4)
    folder = write_run_folder(run, tmp_path_factory.mktemp("vendor") / "run")
    write_vendor(run, folder)
    return run, folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def core_folders(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "simulator").iterdir() if path.is_dir())


def test_a_folder_for_each_core_with_one_trace_and_two_tables(written: tuple[Run, Path]) -> None:
    run, folder = written
    assert len(core_folders(folder)) == len(run.log.cores)
    for path in core_folders(folder):
        assert sorted(one.name for one in path.iterdir()) == sorted(
            ["trace.json", f"{path.name}_instr_exe.csv", f"{path.name}_code_exe.csv"]
        )
        assert not (path / "trace.json").stat().st_mode & 0o022


def test_the_tables_count_every_instruction_and_its_cycles(written: tuple[Run, Path]) -> None:
    run, folder = written
    for path, core in zip(core_folders(folder), run.log.cores, strict=True):
        own = [item for item in core.items if item.kind is Kind.INSTRUCTION]
        cycles = sum(item.end - item.start for item in own)
        instructions = rows(path / f"{path.name}_instr_exe.csv")
        assert tuple(instructions[0]) == INSTRUCTION_COLUMNS
        assert sum(int(row["call_count"]) for row in instructions) == len(own)
        assert sum(int(row["cycles"]) for row in instructions) == cycles
        assert {row["pipe"] for row in instructions} <= set(PIPE_PID)
        code = rows(path / f"{path.name}_code_exe.csv")
        assert tuple(code[0]) == CODE_COLUMNS
        named = [item for item in own if run.log.sites[item.site].file]
        assert sum(int(row["cycles"]) for row in code) == sum(i.end - i.start for i in named)


def test_the_trace_of_a_core_has_disjoint_tracks_of_known_pipes(written: tuple[Run, Path]) -> None:
    run, folder = written
    for path, core in zip(core_folders(folder), run.log.cores, strict=True):
        text = (path / "trace.json").read_text(encoding="utf-8")
        assert text.partition("[")[0] == (
            '{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":1,"traceEvents":'
        )
        events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
        named = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
        tracks: dict[tuple[int, int], float] = defaultdict(float)
        flows: dict[str, list[str]] = defaultdict(list)
        busy = 0.0
        for event in events:
            if event["ph"] == "X":
                track = event["pid"], event["tid"]
                assert event["pid"] in named and event["pid"] in PIPE_PID.values()
                assert event["tid"] >= 1
                assert event["ts"] >= tracks[track] - 1e-9
                tracks[track] = event["ts"] + event["dur"]
                if not event["name"].endswith("_FLAG"):
                    busy += event["dur"]
            elif event["ph"] in "st":
                assert isinstance(event["pid"], str) and isinstance(event["tid"], str)
                flows[event["id"]].append(event["ph"])
        own = [item for item in core.items if item.kind is Kind.INSTRUCTION]
        assert busy * run.log.clock_mhz == pytest.approx(sum(i.end - i.start for i in own))
        assert flows and all(ends == ["s", "t"] for ends in flows.values())


def read_blocks(data: bytes) -> list[tuple[int, int, bytes]]:
    """Read the blocks of visualize_data.bin; fail where a header is not as documented."""
    found, position = [], 0
    while position < len(data):
        size, kind, padding, version, magic = struct.unpack_from("<QBBBB", data, position)
        assert magic == 0x5A and version in (0, 0x5A) and padding < 4
        position += 12
        content = data[position : position + size]
        assert len(content) == size
        found.append((kind, version, content[: size - padding]))
        position += size
    return found


def test_visualize_data_is_a_sequence_of_whole_blocks(written: tuple[Run, Path]) -> None:
    run, folder = written
    found = read_blocks((folder / "simulator" / "visualize_data.bin").read_bytes())
    kinds = [kind for kind, _, _ in found]
    assert set(kinds) == {1, 2, 3, 4, 5, 13}
    sources = [content for kind, _, content in found if kind == 1]
    names = {content[:4096].rstrip(b"\0").decode() for content in sources}
    assert any(name.endswith("test_real_runs.py") for name in names)
    files = json.loads(next(content for kind, _, content in found if kind == 3))
    assert {file["Source"] for file in files["Files"]} <= names
    by_line: dict[str, int] = defaultdict(int)
    for path in core_folders(folder):
        for row in rows(path / f"{path.name}_code_exe.csv"):
            by_line[row["code"]] += int(row["cycles"])
    for file in files["Files"]:
        for line in file["Lines"]:
            assert len(line["Cycles"]) == len(files["Cores"]) == len(run.log.cores)
            assert sum(line["Cycles"]) == by_line[f"{file['Source']}:{line['Line']}"]
            assert set(line) == set(files["Files Dtype"]["Lines"])
    table = json.loads(next(content for kind, _, content in found if kind == 4))
    assert next(version for kind, version, _ in found if kind == 4) == 0
    executed = sum(sum(row["Instructions Executed"]) for row in table["Instructions"])
    assert executed == sum(
        item.kind is Kind.INSTRUCTION for core in run.log.cores for item in core.items
    )
    trace = next(content for kind, _, content in found if kind == 2)
    assert trace == (folder / "trace.json").read_bytes()
    base = json.loads(next(content for kind, _, content in found if kind == 5))
    assert base["block_detail"]["size"] == len(base["block_detail"]["row"]) == len(run.log.cores)
    roofs = json.loads(next(content for kind, _, content in found if kind == 13))
    assert all(0 < line["ratio"] <= 1 for line in roofs["multiple_rooflines"][0]["rooflines"])


@pytest.mark.parametrize("size", range(9))
def test_blocks_are_padded_to_words(size: int) -> None:
    ((kind, _, content),) = read_blocks(block(2, b"x" * size))
    assert (kind, content) == (2, b"x" * size)
    assert len(block(2, b"x" * size)) % 4 == 0


def test_utilisation_is_that_of_the_pipes(written: tuple[Run, Path]) -> None:
    run, folder = written
    table = rows(folder / "PipeUtilization.csv")
    assert [row["sub_block_id"] for row in table] == ["vector0", "vector1"] * (len(table) // 2)
    for row, core in zip(table, run.log.cores, strict=True):
        pipes = run.pipes[core.name]
        cycles = int(row["aiv_total_cycles"])
        assert cycles == core.end - core.start
        assert float(row["aiv_mte2_ratio"]) == pytest.approx(
            pipes["MTE2"]["occupied"] / cycles, abs=1e-6
        )
        assert row["aic_mac_ratio"] == "NA"
