"""What the documents show is true: their code runs, their commands print what stands below them, their lists are whole.

In README.md and docs/*.md a block marked `python` is run, blocks of one document after another in one namespace; a
block marked `text` right behind one is what it prints. A python block that begins with `# name.py` is a file that
later commands use. A block marked `console` has commands (`$ ascend-sim …`, `$ python …`, `$ sed …`, `$ echo $?`)
and what they print; a line `…` stands for any lines, and `…` in a line for any text. Blocks marked otherwise are not
looked at.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.report.folder import FILES
from ascend_sim.report.summary import FINDING_KEYS
from ascend_sim.report.tables import INSTRUCTION_COLUMNS, PIPE_COLUMNS, STALL_COLUMNS
from ascend_sim.trace import Cause, MemoryCause
from ops import Context, find_operator

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = "…"


@dataclass
class Block:
    """A fenced block: what it is marked as, its text, its first line in the document."""

    language: str
    text: str
    line: int
    follows: bool  # only blank lines are between it and the block before


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        follows = not text[end : match.start()].strip()
        found.append(Block(match[1], match[2], line, follows))
        end = match.end()
    return found


def prints(expected: str, printed: str) -> bool:
    """Whether a text is printed, blanks at line ends apart; a line `…` stands for any lines."""
    want = [line.rstrip() for line in expected.strip("\n").split("\n")]
    parts = [
        r"(?:.*\n)*?" if line.strip() == ANY else ".*".join(map(re.escape, line.split(ANY))) + r"\n"
        for line in want
    ]
    have = "".join(line.rstrip() + "\n" for line in printed.strip("\n").split("\n"))
    return re.fullmatch("".join(parts), have) is not None


class Shell:
    """Runs the commands of one document in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0
        for name in ("examples", "benchmarks", "configs"):
            (folder / name).symlink_to(ROOT / name)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "80",
            "NO_COLOR": "1",
        }

    def run(self, command: str) -> str:
        if command == "echo $?":
            return f"{self.code}\n"
        program, *words = shlex.split(command)
        if program == "sed":
            return subprocess.check_output(command, shell=True, cwd=self.folder, text=True)
        start = {"ascend-sim": ["-m", "ascend_sim"], "python": []}[program]
        done = subprocess.run(
            [sys.executable, *start, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block and what is shown below it."""
    assert text.startswith("$ ")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_shows(path: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    namespace: dict[str, object] = {"__name__": "document"}
    printed: str | None = None
    for block in blocks(path):
        place = f"{path.name}:{block.line}"
        if block.language == "python":
            named = re.match(r"# (\w+\.py)\n", block.text)
            if named:
                (tmp_path / named[1]).write_text(block.text, encoding="utf-8")
                continue
            output = io.StringIO()
            code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
            with contextlib.redirect_stdout(output), contextlib.chdir(tmp_path):
                exec(code, namespace)
            printed = output.getvalue()
            continue
        if block.language == "text" and block.follows and printed is not None:
            assert prints(block.text, printed), f"{place}: printed was\n{printed}"
        elif block.language == "console":
            for command, expected in commands(block.text):
                output_text = shell.run(command)
                assert prints(expected, output_text), f"{place}: $ {command} printed\n{output_text}"
        printed = None
    assert not [path for path in tmp_path.glob("*.py") if not _is_used(path.name, DOCUMENTS)]


def _is_used(name: str, documents: list[Path]) -> bool:
    return any(
        re.search(rf"^\$ .*\b{re.escape(name)}", d.read_text("utf-8"), re.M) for d in documents
    )


def test_the_comparison_itself() -> None:
    assert prints("a\n…\nd\n", "a\nb  \nc\nd\n")
    assert prints("a\n…\n", "a\n")
    assert prints("…\nb", "b\n")
    assert prints("a … c", "a b b c\n")
    assert not prints("a … c", "a b\nc\n")
    assert not prints("a\n…\nd\n", "a\nb\n")
    assert not prints("a\n", "a\nb\n")
    assert not prints("a b\n", "a  b\n")


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", text)
    assert [t for t in targets if not t.startswith("http") and not (path.parent / t).exists()] == []


# ---- the timing model -----------------------------------------------------------------------

TIMING = (ROOT / "docs" / "timing-model.md").read_text(encoding="utf-8")
READ, UNREAD = TIMING.split("## Keys that a vector kernel's time does not depend on")


def leaves(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float)):
            yield prefix + key, value


KEYS = {
    key: value
    for key, value in leaves(sim.load_chip("toy").model_dump())
    if key != "revision"
    and (not key.startswith("vector_costs.") or key.startswith("vector_costs.add."))
}
"""Every number of a chip's file; of the prices those of one instruction."""


def keys_in(text: str) -> set[str]:
    """The keys that a text names in backticks, itself or by a section above it (some are causes as well)."""
    named = set(re.findall(r"`([\w.]+)`", text)) - {"scalar", "launch"}
    return {key for key in KEYS if any(key == name or key.startswith(name + ".") for name in named)}


def test_every_key_is_named_once() -> None:
    assert keys_in(READ) | keys_in(UNREAD) == set(KEYS)
    assert keys_in(READ) & keys_in(UNREAD) == set()


def test_every_key_that_is_named_exists() -> None:
    sections = {key.partition(".")[0] for key in KEYS}
    named = [
        name for name in re.findall(r"`(\w+\.[\w.]+)`", TIMING) if name.split(".")[0] in sections
    ]
    paths = {key[: match.start()] for key in KEYS for match in re.finditer(r"\.|$", key)}
    assert len(named) > 40
    assert set(named) - paths == set()


TILES, TILE = 4, 4096


def busy_kernel(x: Any, y: Any, z: Any, numbers: Any) -> None:
    """Touch each rule of the model: scalar reads, queues, bank conflicts, barriers, loads and stores in a row."""
    start = asc.get_block_idx() * TILES * TILE
    windows = []
    for address in (x + start, y + start, z + start, numbers):
        tensor = asc.GlobalTensor()
        tensor.set_global_buffer(address)
        windows.append(tensor)
    x_gm, y_gm, z_gm, numbers_gm = windows
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(source, 4, TILE * 2)
    pipe.init_buffer(target, 2, TILE * 2)
    for index in (0, 40000, 0, 40000, 40020):
        numbers_gm.get_value(index)
    for tile in range(TILES):
        a, b, c = (
            source.alloc_tensor(x.dtype),
            source.alloc_tensor(x.dtype),
            target.alloc_tensor(x.dtype),
        )
        asc.data_copy(a, x_gm[tile * TILE :], TILE)
        asc.data_copy(b, y_gm[tile * TILE :], TILE)
        source.enque(a)
        source.deque(x.dtype)
        source.enque(b)
        source.deque(x.dtype)
        asc.add(c, a, b, TILE)
        asc.add(c[2048:], a, b, 2048)
        asc.add(c[1040:], c, b, 1024)  # reads and writes the same banks
        for _ in range(36):
            asc.add(c[:16], a[:16], b[:16], 16)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        target.enque(c)
        source.free_tensor(a)
        source.free_tensor(b)
        asc.data_copy(z_gm[tile * TILE :], target.deque(x.dtype), TILE)
        target.free_tensor(c)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    a = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, TILE)
    a.set_value(0, 1.0)
    for tile in range(TILES):
        asc.data_copy(a, x_gm[tile * TILE :], TILE)
        asc.data_copy(a, x_gm[tile * TILE :], 512)
        asc.data_copy(a, x_gm[tile * TILE + 16 :], 512)  # off the border of a sector
    for tile in range(6 * TILES):
        asc.data_copy(z_gm[tile % TILES * TILE :], a, TILE)
    modes = asc.CacheMode.CACHE_MODE_NORMAL, asc.CacheMode.CACHE_MODE_DISABLE
    for (
        mode
    ) in modes:  # what all cores ask for at once, in L2 and around it: the same, and side by side
        for apart in (0, 256):
            tensor = asc.GlobalTensor()
            tensor.set_global_buffer(x + apart * asc.get_block_idx())
            tensor.set_l2_cache_hint(mode)
            asc.data_copy(a, tensor, asc.DataCopyParams(64, 2, 6, 0))
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def times_on(chip: Any, l2: str) -> Any:
    """When everything happened, or what the chip could not do."""
    x, y, z = (np.zeros(7 * TILES * TILE, np.float16) for _ in range(3))
    numbers = np.zeros(80000, np.int32)
    try:
        run = sim.launch(
            busy_kernel, x, y, z, numbers, cores=7, chip=chip, l2=l2, numerics="off", checks="off"
        )
    except sim.KernelError as error:
        return error.finding.code
    return run.cycles, [(item.start, item.end) for core in run.log.cores for item in core.items]


@cache
def usual_times(l2: str) -> Any:
    return times_on("toy", l2)


def with_others(numbers: dict[str, float], folder: Path) -> Path:
    """A chip that is `toy` but for some numbers."""
    chip: dict[str, Any] = {
        "extends": "toy",
        "name": "other",
        "soc": "Toy",
        "description": "",
        "revision": 1,
    }
    chip["sources"] = {}
    for key, value in numbers.items():
        *sections, last = key.split(".")
        inner = chip
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
        chip["sources"][key.partition(".")[0]] = {"source": "a test", "confidence": "L"}
    path = folder / "other.yaml"
    path.write_text(yaml.safe_dump(chip), encoding="utf-8")
    return path


def _more(key: str) -> float:
    """Return a larger value for a key; granules and lines must stay multiples of each other."""
    return KEYS[key] * 4 + (key not in ("gm.line", "gm.granule_aic"))


@pytest.mark.parametrize("key", sorted(keys_in(READ)))
def test_a_key_of_the_model_changes_times(key: str, tmp_path: Path) -> None:
    value = KEYS[key]
    with_code = (
        {"icache.miss": 100.0} if key.startswith("icache.") else {}
    )  # the toy's comes in no time
    usual = {
        l2: times_on(sim.load_chip(with_others(with_code, tmp_path)), l2)
        if with_code
        else usual_times(l2)
        for l2 in ("cold", "dirty", "warm")
    }
    for other in (_more(key), max(value // 16, 1), 64, 150_000):
        with contextlib.suppress(sim.ConfigError):  # a memory of which nothing would be left
            chip = sim.load_chip(with_others(with_code | {key: type(value)(other)}, tmp_path))
            if any(times_on(chip, l2) != times for l2, times in usual.items()):
                return
    pytest.fail(f"{key} changes nothing")


def test_the_other_keys_change_no_time(tmp_path: Path) -> None:
    others = {key: type(KEYS[key])(_more(key)) for key in keys_in(UNREAD)}
    chip = sim.load_chip(with_others(others, tmp_path))
    assert [times_on(chip, l2) for l2 in ("cold", "warm")] == [
        usual_times("cold"),
        usual_times("warm"),
    ]


# ---- what follows from the source -----------------------------------------------------------


def load_generator() -> Any:
    path = ROOT / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("docs_generate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.parametrize("document", sorted(GENERATOR.PARTS))
def test_generated_parts_are_up_to_date(document: str) -> None:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    assert text == GENERATOR.filled(document), "run `python docs/generate.py`"


def test_every_code_that_a_run_can_give_is_listed() -> None:
    """Codes that the collection in the generator could have missed: those that the tests of the parts name."""
    listed = set(
        re.findall(
            r"^\| `([a-z0-9…-]+)` \|", (ROOT / "docs" / "checks.md").read_text("utf-8"), re.M
        )
    )
    assert {code for _, code in GENERATOR.finding_codes()} == listed
    assert len(listed) > 70
    kinds_and_codes = re.compile(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"')
    named = set()
    for package in ("isa", "ascend_sim/lang", "ops/rope_grad"):
        for path in (ROOT / package).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.fullmatch(
                    r'\s*"[a-z0-9]+(-[a-z0-9]+)+",', line
                ):  # an argument on a line of its own
                    named |= set(kinds_and_codes.findall(line))
    assert {"queue-depth", "repeat-times-limit"} & named
    assert {code for code in named if not code.endswith("-limit")} <= listed


def test_the_language_is_pyascs_but_for_what_is_said() -> None:
    additions = {"bfloat16", "GlobalTensor.reinterpret_cast"}
    assert additions <= GENERATOR.our_names() - GENERATOR.pyasc_names()
    assert {"add", "TQue.enque", "set_flag"} <= GENERATOR.our_names() & GENERATOR.pyasc_names()


# ---- the files of a run ---------------------------------------------------------------------

OUTPUT = (ROOT / "docs" / "output-files.md").read_text(encoding="utf-8")


def named_in(text: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", text))


def test_every_key_of_the_summary_is_described() -> None:
    x = np.ones(16, np.float32)
    run = sim.launch(lambda x: asc.set_mask_norm(), x, chip="toy")
    keys = OUTPUT.split("## summary.json")[1].split("## Tables")[0]
    pipe = run.pipes["core0.aiv0"]["V"]
    assert set(run.summary) | set(pipe) | set(run.summary["stalls"]) <= named_in(keys)
    assert {cause.value for cause in MemoryCause} <= named_in(keys)
    finding = {key for key in FINDING_KEYS if key not in ("hits", "related")}
    assert finding <= named_in(keys)


def test_every_column_and_file_is_described() -> None:
    tables = OUTPUT.split("## Tables")[1].split("## Traces")[0]
    named = named_in(tables) | {cause.value for cause in Cause}  # "a column for each cause"
    assert {*INSTRUCTION_COLUMNS, *PIPE_COLUMNS, *STALL_COLUMNS} <= named
    described = set(re.findall(r"^([\w.]+\.(?:json|csv|html|npz|bin))$", OUTPUT, re.MULTILINE))
    assert set(FILES) == described


# ---- CONTRIBUTING and CHANGELOG -------------------------------------------------------------


def hunks() -> Iterator[tuple[str, str]]:
    """Yield the file and the added lines of each hunk in CONTRIBUTING's diffs."""
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        if block.language == "diff":
            for part in block.text.split("+++ b/")[1:]:
                name, _, rest = part.partition("\n")
                for hunk in rest.split("@@\n")[1:]:
                    yield name, "".join(line[1:] for line in hunk.splitlines(keepends=True))


@pytest.mark.parametrize(("name", "lines"), list(hunks()))
def test_the_diffs_of_the_recipes_are_what_stands_in_the_files(name: str, lines: str) -> None:
    assert lines.strip()
    assert lines in (ROOT / name).read_text(encoding="utf-8")


def test_the_changelog_names_todays_cycles() -> None:
    """The newest table of golden runs; a changed time needs a line of its own as well."""
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## Unreleased")[1]
    rows = dict(re.findall(r"^\| (.+?) \| ([\d,]+) \|$", unreleased, re.MULTILINE))
    printed = [
        (ROOT / "examples" / f"{name}.out").read_text(encoding="utf-8")
        for name in ("01_vector_add", "02_vector_add_flags")
    ]
    cycles = re.findall(r"([\d,]+) cycles \(", "".join(printed))
    assert [count for name, count in rows.items() if "rope_grad" not in name] == cycles
    run = find_operator("rope_grad").run({}, Context(numerics="off", checks="off"))
    assert rows["`rope_grad` on its default sizes"] == f"{run.cycles:,}"
