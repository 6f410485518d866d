"""The vendor's other files: traces core by core, tables of instructions and lines, `visualize_data.bin`.

As their importers read them: columns, type codes and block headers are the vendor's. An address is the place
of a call here, since there is no program counter: calls of one line are told apart as far as their places are.
"""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.report.chrome import (
    CACHE_LANE,
    COLOUR,
    LANE_OF,
    cache_miss,
    flag_detail,
    process_name,
    site_address,
)  # fmt: skip
from ascend_sim.report.columns import Ints
from ascend_sim.report.ledger import CoreLedger, Ledger
from ascend_sim.report.names import Details, short_path, site_lines
from ascend_sim.trace import Cause, Item, Kind
from isa.types import CoreKind, Pipe

INSTRUCTION_COLUMNS = (
    "instr",
    "addr",
    "pipe",
    "call_count",
    "cycles",
    "running_time(us)",
    "detail",
)
CODE_COLUMNS = ("code", "call_count", "cycles", "running_time(us)")
PIPE_PID = {
    "SCALAR": 10, "SCALARLDST": 20, "VECTOR": 30, "CUBE": 40, "MTE1": 50, "MTE2": 60, "MTE3": 70,
    "FIXP": 80, "FLOWCTRL": 90, "ALL": 100, "CACHEMISS": 110, "USERMARK": 120,
}  # fmt: skip
"""Process numbers of the pipes in a trace of one core."""

SOURCE, TRACE, API_FILE, API_INSTR, BASE_INFO, ROOFLINE = 1, 2, 3, 4, 5, 13
"""Types of blocks in `visualize_data.bin`."""

_MAGIC = 0x5A
_PATH_BYTES = 4096
_INT, _FLOAT, _STRING = 1, 2, 3


def write_vendor_files(
    ledger: Ledger, chip: Chip, summary: Mapping[str, Any], sources: Mapping[str, str], folder: Path
) -> None:
    """Write `simulator/` and `PipeUtilization.csv` into a folder that has `trace.json`."""
    simulator = folder / "simulator"
    simulator.mkdir()
    for entry in ledger:
        name, _ = process_name(entry.core)
        own = simulator / name
        own.mkdir()
        with _text(own / "trace.json") as stream:
            write_core_trace(ledger, entry, stream)
        with _text(own / f"{name}_instr_exe.csv") as stream:
            write_instructions(ledger, entry, stream)
        with _text(own / f"{name}_code_exe.csv") as stream:
            write_code(ledger, entry, stream)
    with _text(folder / "PipeUtilization.csv") as stream:
        write_pipe_utilization(summary, ledger, stream)
    with (simulator / "visualize_data.bin").open("wb") as binary:
        trace = (folder / "trace.json").read_bytes()
        for kind, content in blocks(ledger, chip, summary, sources, trace):
            binary.write(block(kind, content))


def _text(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


# ---- tables ---------------------------------------------------------------------------------


def _by_call(entry: CoreLedger) -> list[tuple[int, int, int, Ints]]:
    """Return the instructions of a core in groups of one pipe, name and place, in order of the places."""
    columns = entry.columns
    rows = np.flatnonzero((columns["kind"] == Kind.INSTRUCTION) & (columns["start"] >= 0))
    groups: dict[tuple[int, int, int], list[int]] = {}
    sites, names, pipes = (columns[name][rows].tolist() for name in ("site", "name", "pipe"))
    for key, row in zip(zip(sites, pipes, names, strict=True), rows.tolist(), strict=True):
        groups.setdefault(key, []).append(row)
    return [
        (site, pipe, name, np.array(own, np.int64))
        for (site, pipe, name), own in sorted(groups.items())
    ]


def _cycles(entry: CoreLedger, rows: Ints) -> int:
    """Return the cycles from start to end of some instructions, as the vendor's tables count them."""
    columns = entry.columns
    return int(np.maximum(columns["end"][rows] - columns["start"][rows], 0).sum())


def write_instructions(ledger: Ledger, entry: CoreLedger, stream: TextIO) -> None:
    """Write `*_instr_exe.csv`: instructions by place, with the operands of the first."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(INSTRUCTION_COLUMNS)
    details = Details()
    for site, pipe, name, rows in _by_call(entry):
        cycles = _cycles(entry, rows)
        writer.writerow([
            ledger.names.things[name], site_address(site), LANE_OF[Pipe(pipe)], len(rows), cycles,
            _us(cycles, ledger), details.of(entry.core.items[int(rows[0])]),
        ])  # fmt: skip


def write_code(ledger: Ledger, entry: CoreLedger, stream: TextIO) -> None:
    """Write `*_code_exe.csv`: lines with their calls and cycles, those that take longest first."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CODE_COLUMNS)
    for line, (count, cycles, _) in sorted(
        _lines(ledger, entry).items(), key=lambda one: -one[1][1]
    ):
        writer.writerow([line, count, cycles, _us(cycles, ledger)])


def _lines(ledger: Ledger, entry: CoreLedger) -> dict[str, list[int]]:
    """Return calls, cycles and bytes of each line of a core."""
    sites = ledger.log.sites
    sums: dict[str, list[int]] = {}
    for site, _, _, rows in _by_call(entry):
        place = sites[site] if site < len(sites) else None
        if place is None or not place.file:
            continue
        line = sums.setdefault(f"{short_path(place.file)}:{place.line}", [0, 0, 0])
        line[0] += len(rows)
        line[1] += _cycles(entry, rows)
        line[2] += int(entry.columns["bytes"][rows].sum())
    return sums


def _us(cycles: float, ledger: Ledger) -> str:
    return f"{cycles / ledger.log.clock_mhz:.6f}"


_VECTOR = {"vec": "V", "scalar": "S", "mte2": "MTE2", "mte3": "MTE3"}
_CUBE = {
    "mac": "M",
    "scalar": "S",
    "mte1": "MTE1",
    "mte2": "MTE2",
    "mte3": "MTE3",
    "fixpipe": "FIX",
}


def write_pipe_utilization(summary: Mapping[str, Any], ledger: Ledger, stream: TextIO) -> None:
    """Write `PipeUtilization.csv`: a row for each core that ran; a pipe's ratio is that of its occupied time."""
    writer = csv.writer(stream, lineterminator="\n")
    head = ["block_id", "sub_block_id"]
    for kind, ratios in (("aic", _CUBE), ("aiv", _VECTOR)):
        head += [f"{kind}_time(us)", f"{kind}_total_cycles"]
        for name in ratios:
            head += [f"{kind}_{name}_time(us)", f"{kind}_{name}_ratio"]
    writer.writerow(head)
    for entry in ledger:
        core = entry.core
        pipes, cycles = summary["pipes"][core.name], max(core.end - core.start, 0)
        row: list[Any] = [
            core.blocks[0][0] if core.blocks else "",
            process_name(core)[0].rpartition(".")[2],
        ]
        row[1] = row[1].replace("cubecore", "cube").replace("veccore", "vector")
        for core_kind, ratios in ((CoreKind.AIC, _CUBE), (CoreKind.AIV, _VECTOR)):
            if core.kind is not core_kind:
                row += ["NA"] * (2 + 2 * len(ratios))
                continue
            row += [_us(cycles, ledger), cycles]
            for pipe in ratios.values():
                taken = pipes[pipe]["busy"] if pipe == "S" else pipes[pipe]["occupied"]
                row += [_us(taken, ledger), f"{taken / cycles:.6f}" if cycles else "0"]
        writer.writerow(row)


# ---- the trace of one core ------------------------------------------------------------------


def write_core_trace(ledger: Ledger, entry: CoreLedger, stream: TextIO) -> None:
    """Write the trace of one core: a process for each pipe, tracks on which nothing overlaps."""
    stream.write('{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":1,"traceEvents":[')
    separator = "\n"
    for event in _core_events(ledger, entry):
        stream.write(separator + event)
        separator = ",\n"
    stream.write("\n]}\n")


def _core_events(ledger: Ledger, entry: CoreLedger) -> Iterator[str]:
    mhz, codes = ledger.log.clock_mhz, [json.dumps(one) for one in site_lines(ledger.log.sites)]
    details = Details(json.dumps)
    for pipe in entry.segments:
        lane, pid, free = LANE_OF[pipe], PIPE_PID[LANE_OF[pipe]], [0]
        events: list[str] = []
        for item in entry.items(pipe):
            begin, end = _span(item, ledger.log.cycles)
            if begin < 0 or item.kind is Kind.BARRIER:
                continue
            track = next((k for k, until in enumerate(free) if until <= begin), len(free))
            free[track : track + 1] = [end]
            events.append(_slice(item, (begin, end), (pid, track + 1), mhz, codes, details))
            events += _flow(item, (begin, end), (pid, track + 1), mhz, entry)
        if events:
            yield from _names(lane, len(free))
            yield from events
    misses = [stall for stall in entry.core.stalls if stall.cause is Cause.SCALAR]
    if misses:
        yield from _names(CACHE_LANE, 1)
        for stall in misses:
            yield cache_miss(stall, (PIPE_PID[CACHE_LANE], 1), mhz, codes)


def _names(lane: str, tracks: int) -> Iterator[str]:
    """Yield name and place of a lane's process and of its tracks."""
    pid = PIPE_PID[lane]
    yield f'{{"ph":"M","name":"process_name","pid":{pid},"tid":0,"args":{{"name":"{lane}"}}}}'
    yield f'{{"ph":"M","name":"process_sort_index","pid":{pid},"tid":0,"args":{{"sort_index":{pid}}}}}'
    for track in range(1, tracks + 1):
        yield (
            f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{track},'
            f'"args":{{"name":"{lane}_{track}"}}}}'
        )
        yield (
            f'{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{track},'
            f'"args":{{"sort_index":{track}}}}}'
        )


def _span(item: Item, cycles: int) -> tuple[int, int]:
    end = item.end if item.end >= 0 else cycles
    if item.kind is Kind.INSTRUCTION:
        return item.start, end
    if item.kind is Kind.WAIT_FLAG:
        return item.head, end
    return (max(end - 1, 0), end) if item.start >= 0 else (-1, -1)


_NAME = {Kind.SET_FLAG: ("SET_FLAG", "black"), Kind.WAIT_FLAG: ("WAIT_FLAG", "yellow")}


def _slice(
    item: Item, span: tuple[int, int], track: tuple[int, int], mhz: float, codes: list[str],
    details: Details,
) -> str:  # fmt: skip
    name, colour = _NAME.get(item.kind, (item.name, COLOUR[item.pipe]))
    detail = details.of(item) if item.kind is Kind.INSTRUCTION else json.dumps(flag_detail(item))
    code = codes[item.site] if item.site < len(codes) else '""'
    size = f',"process_bytes":"{item.bytes}"' if item.bytes else ""
    return (
        f'{{"ph":"X","name":"{name}","cname":"{colour}","ts":{span[0] / mhz!r},"dur":{(span[1] - span[0]) / mhz!r},'
        f'"pid":{track[0]},"tid":{track[1]},"args":{{"pc_addr":"{site_address(item.site)}","code":{code},'
        f'"detail":{detail}{size}}}}}'
    )


def _flow(
    item: Item, span: tuple[int, int], track: tuple[int, int], mhz: float, entry: CoreLedger
) -> Iterator[str]:
    """Yield the ends of an arrow inside the core: the middle of the set, the end of the wait."""
    setter = item.partner
    if item.kind is Kind.WAIT_FLAG and setter is not None and setter.core == item.core:
        lanes = LANE_OF[setter.pipe], LANE_OF[item.pipe]
        common = f'"name":"flow","id":"{setter.index}","cat":"{lanes[0]}To{lanes[1]}"'
        middle = (setter.end - 0.5) / mhz
        yield (f'{{"ph":"s",{common},"ts":{middle!r},"pid":"{PIPE_PID[lanes[0]]}","tid":"1"}}')
        yield f'{{"ph":"t",{common},"ts":{span[1] / mhz!r},"pid":"{track[0]}","tid":"{track[1]}"}}'
    del entry


# ---- visualize_data.bin ---------------------------------------------------------------------


def block(kind: int, content: bytes) -> bytes:
    """Return a block: its header and its content, padded to whole words of four bytes."""
    padding = -len(content) % 4
    version = 0 if kind == API_INSTR else _MAGIC
    head = struct.pack("<QBBBB", len(content) + padding, kind, padding, version, _MAGIC)
    return head + content + b"\0" * padding


def blocks(
    ledger: Ledger, chip: Chip, summary: Mapping[str, Any], sources: Mapping[str, str], trace: bytes
) -> Iterator[tuple[int, bytes]]:
    """Yield the blocks of the file as (type, content): sources, lines, instructions, roofs, the trace."""
    for path, text in sources.items():
        name = path.encode()[: _PATH_BYTES - 1]
        yield SOURCE, name + b"\0" * (_PATH_BYTES - len(name)) + text.encode()
    yield API_FILE, _json(_api_file(ledger))
    yield API_INSTR, _json(_api_instructions(ledger))
    yield BASE_INFO, _json(_base_info(ledger, chip, summary))
    yield ROOFLINE, _json(_roofline(summary, ledger))
    yield TRACE, trace


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _core_names(ledger: Ledger) -> list[str]:
    return [process_name(entry.core)[0] for entry in ledger]


def _api_file(ledger: Ledger) -> dict[str, Any]:
    cores = _core_names(ledger)
    by_core = [_lines(ledger, entry) for entry in ledger]
    addresses: dict[str, list[str]] = {}
    for number, site in enumerate(ledger.log.sites):
        if site.file:
            addresses.setdefault(f"{short_path(site.file)}:{site.line}", []).append(
                site_address(number)
            )
    files: dict[str, list[dict[str, Any]]] = {}
    for place in sorted({place for lines in by_core for place in lines}, key=_in_order):
        file, _, line = place.rpartition(":")
        own = [lines.get(place, [0, 0, 0]) for lines in by_core]
        files.setdefault(file, []).append({
            "Line": int(line),
            "Cycles": [cycles for _, cycles, _ in own],
            "Instructions Executed": [count for count, _, _ in own],
            "Address Range": [[address, address] for address in addresses.get(place, [])],
            "Process Bytes": [size for _, _, size in own],
        })  # fmt: skip
    return {
        "Cores": cores,
        "Files Dtype": {
            "Lines": {
                "Address Range": _STRING, "Cycles": _INT, "Instructions Executed": _INT, "Line": _INT,
                "Process Bytes": _INT,
            },
        },
        "Files": [{"Source": file, "Lines": lines} for file, lines in files.items()],
    }  # fmt: skip


def _in_order(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line)


def _api_instructions(ledger: Ledger) -> dict[str, Any]:
    sites, count = ledger.log.sites, len(ledger)
    rows: dict[tuple[int, int, int], dict[str, Any]] = {}
    for number, entry in enumerate(ledger):
        for site, pipe, name, own in _by_call(entry):
            place = sites[site] if site < len(sites) else None
            code = (
                f"{short_path(place.file)}:{place.line}" if place is not None and place.file else ""
            )
            row = rows.setdefault((site, pipe, name), {
                "Address": site_address(site), "AscendC Inner Code": code,
                "Source": ledger.names.things[name], "Pipe": LANE_OF[Pipe(pipe)],
                "Cycles": [0] * count, "Instructions Executed": [0] * count,
            })  # fmt: skip
            row["Cycles"][number] += _cycles(entry, own)
            row["Instructions Executed"][number] += len(own)
    return {
        "Cores": _core_names(ledger),
        "Instructions Dtype": {
            "Address": _STRING, "AscendC Inner Code": _STRING, "Cycles": _INT,
            "Instructions Executed": _INT, "Pipe": _STRING, "Source": _STRING,
        },
        "Instructions": [rows[key] for key in sorted(rows)],
    }  # fmt: skip


def _base_info(ledger: Ledger, chip: Chip, summary: Mapping[str, Any]) -> dict[str, Any]:
    table = io.StringIO()
    write_pipe_utilization(summary, ledger, table)
    head, *rows = csv.reader(io.StringIO(table.getvalue()))
    kinds = {entry.core.kind for entry in ledger}
    kind = "mix" if len(kinds) > 1 else "cube" if kinds == {CoreKind.AIC} else "vector"
    return {
        "name": summary["op"], "soc": chip.soc, "op_type": kind, "block_dim": str(summary["block_dim"]),
        "duration": _us(ledger.log.cycles, ledger),
        "block_detail": {"head_name": head, "size": len(rows), "row": rows},
    }  # fmt: skip


def _roofline(summary: Mapping[str, Any], ledger: Ledger) -> dict[str, Any]:
    found = summary["roofline"]
    intensity, rate = found["point"]
    mhz = ledger.log.clock_mhz
    lines = [
        {
            "bw": roof["per_cycle"] * mhz / 1e6, "bw_name": roof["name"],
            "computility": found["peak"] * mhz / 1e6, "computility_name": "work, all cores",
            "point": [intensity or 0.0, rate * mhz / 1e6],
            "ratio": min(roof["share"], 1.0),
        }
        for roof in found["roofs"]
        if roof["kind"] == "memory"
    ]  # fmt: skip
    return {
        "advice": " ".join(summary["advice"]),
        "multiple_rooflines": [{"title": "GM", "rooflines": lines}] if lines else [],
    }
