"""The commands that look into runs: `report`, `explain`, `diff`, `what-if`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascend_sim.chip_file import nearest
from ascend_sim.cli.app import _exit, _request, _simulate, app
from ascend_sim.cli.commands import TargetCommand
from ascend_sim.cli.options import (
    Arguments,
    ChipOption,
    CoresOption,
    KernelOption,
    L2Option,
    SeedOption,
    SetOption,
)
from ascend_sim.errors import ConfigError

if TYPE_CHECKING:
    from ascend_sim.run import Run

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def load(folder: Path) -> Run:
    """Return the run of a folder. Raises `ConfigError` where there is none, with the nearest name."""
    from ascend_sim.run import Run

    if not folder.is_dir():
        beside = folder.parent.iterdir() if folder.parent.is_dir() else iter(())
        names = [entry.name for entry in beside if (entry / "summary.json").is_file()]
        hint = nearest(folder.name, names)
        raise ConfigError(f"there is no folder {folder}{hint}; `ascend-sim run` writes one")
    return Run.load(folder)


@app.command()
def report(
    folder: RunFolder,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write report.html anew, with what-if where it was asked for."),
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Write all files of the folder anew.")
    ] = False,
    vendor: Annotated[
        bool,
        typer.Option(
            "--vendor", help="Write the vendor's other files, too: simulator/, PipeUtilization.csv."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a saved run again, without simulating."""
    from rich.console import Console

    from ascend_sim.report.folder import write_json, write_report_page, write_vendor
    from ascend_sim.report.text import print_summary

    def work() -> int:
        run = load(folder)
        if files:
            run.save(folder)
        if html:
            write_report_page(run, folder)
        if vendor:
            write_vendor(run, folder)
        if as_json:
            write_json(run.summary, sys.stdout)
        else:
            print_summary(run.summary, Console(markup=False, emoji=False), folder)
        return 0

    _exit(work)


@app.command()
def explain(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="The folder of a run.", show_default=False),
    ] = None,
    line: Annotated[
        str | None, typer.Option("--line", metavar="FILE:N", help="A line of the kernel.")
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--code", metavar="CODE", help="The code of a finding, or the vendor's name of one."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a line is slow, or what a finding's code means."""

    def work() -> int:
        if (line is None) == (code is None):
            raise ConfigError("explain what? Give --line FILE:N and a run, or --code CODE")
        if code is not None:
            return _explain_code(code, as_json=as_json)
        if folder is None:
            raise ConfigError(
                "explain --line needs the folder of a run: explain runs/add-1 --line add.py:16"
            )
        assert line is not None
        _show(load(folder).explain(line), as_json=as_json)
        return 0

    _exit(work)


def _explain_code(code: str, *, as_json: bool) -> int:
    from ascend_sim.codes import MEANING, finding_codes
    from ascend_sim.errors import EXIT_CODE
    from ascend_sim.vendor_codes import find, meaning, vendor_of

    known = finding_codes()
    kinds = [kind for kind, name in known if name == code]
    theirs = None if kinds else find(code)
    if not kinds and theirs is None:  # codes that begin with a parameter's name are one entry
        form = next((name for _, name in known if "…" in name and _is_of(code, name)), code)
        kinds = [kind for kind, name in known if name == form]
        known = {
            (kind, code if name == form else name): said for (kind, name), said in known.items()
        }
    if theirs is not None:
        same = [(kind, name) for kind, name in known if theirs in vendor_of(kind, name).names()]
        text = [
            meaning(theirs),
            f"Here it is told as {', '.join(f'{k} {n}' for k, n in sorted(same))}.",
        ]
        _show(
            {
                "vendor": theirs,
                "codes": [{"kind": k, "code": n} for k, n in sorted(same)],
                "text": text,
            },
            as_json=as_json,
        )
        return 0
    if not kinds:
        raise ConfigError(
            f"no finding has the code {code!r}{_codes_like(code, known)} (docs/checks.md lists them all)"
        )
    for kind in kinds:
        text = [f"{kind} {code}: {MEANING[kind]} (exit code {EXIT_CODE[kind]})."]
        text += [" ".join(message.split()) for message in known[kind, code]]
        vendor = vendor_of(kind, code)
        text += vendor.text()
        entry = {
            "kind": kind,
            "code": code,
            "exit_code": EXIT_CODE[kind],
            "vendor": vendor.as_dict(),
        }
        _show({**entry, "text": text}, as_json=as_json)
    return 0


def _is_of(code: str, form: str) -> bool:
    """Return whether a code is a form such as "…-limit" filled in."""
    return re.fullmatch(re.escape(form).replace("…", "[a-z0-9-]+"), code) is not None


def _codes_like(word: str, known: Iterable[tuple[str, str]]) -> str:
    """Name the codes of a kind for the kind's own name, else the nearest code."""
    of_kind = sorted(name for kind, name in known if kind == word.upper().replace("-", "_"))
    if of_kind:
        return f"; the codes of that kind are {', '.join(of_kind)}"
    return nearest(word, sorted({name for _, name in known}))


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from ascend_sim.report.folder import write_json

    if as_json:
        write_json(found, sys.stdout)
        return
    console = Console(markup=False, emoji=False)
    for sentence in found["text"]:
        console.print(Text(sentence))


@app.command(short_help="Show where two runs differ; a gate for CI.")
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The one to compare with it.")],
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on", metavar="NAME:+LIMIT",
            help="Exit 5 where B is beyond it: total:+2%, cycles:+100, memory:+5%, MTE2:+0, gm_read:+0. Repeatable.",
        ),
    ] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show where two runs differ, by pipe, line and cause; a gate for CI."""
    from rich.console import Console

    from ascend_sim.report.diff import broken, read_gate
    from ascend_sim.report.folder import write_json
    from ascend_sim.report.text_diff import markdown, print_diff

    def work() -> int:
        gates = [read_gate(text, nearest) for text in fail_on or []]
        found = load(before).diff(load(after))
        if as_json:
            write_json(found.as_dict(), sys.stdout)
        elif as_markdown:
            print(markdown(found))
        else:
            print_diff(found, Console(markup=False, emoji=False))
        failed = [text for gate in gates if (text := broken(found, gate))]
        for text in failed:
            print(f"ascend-sim: the gate failed: {text}", file=sys.stderr)
        return 5 if failed else 0

    _exit(work)


@app.command(
    name="what-if",
    cls=TargetCommand,
    short_help="Simulate again with a resource ideal: what would help?",
)
def what_if(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="RUN|OP_OR_FILE", help="A run's folder, an operator, a file.")
    ],
    arguments: Arguments = None,
    ideal: Annotated[
        str | None,
        typer.Option(
            "--ideal", metavar="NAME,NAME+NAME",
            help="What to make ideal: mte2, sync, buffer, ...; a+b for two together. Default all that matter.",
        ),
    ] = None,
    chip: ChipOption = None,
    set_: SetOption = None,
    seed: SeedOption = None,
    cores: CoresOption = None,
    l2: L2Option = None,
    kernel: KernelOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Simulate again with a resource ideal: what would help, and by how much.

    Of a run's folder, the table is kept there as what_if.json and stands in its report.html.
    """
    from rich.console import Console

    from ascend_sim.cli.show import working
    from ascend_sim.report.folder import write_json, write_report_page
    from ascend_sim.report.text_what_if import print_what_if

    def work() -> int:
        names = [name for name in (ideal or "").split(",") if name.strip()] or None
        folder = Path(target) if Path(target).is_dir() else None
        if folder is not None:
            run = load(folder)
        else:
            request = _request(
                ctx,
                target,
                arguments,
                chip,
                set_,
                seed,
                cores,
                "off",
                "off",
                l2,
                None,
                None,
                kernel,
            )
            outcome = _simulate(request)
            if outcome.run is None:
                raise ConfigError(f"{target} did not run: {outcome.error}")
            run = outcome.run
        with working(quiet_output=as_json, own_output=False):
            found = run.what_if(names).as_dict()
        if folder is not None and names is None:
            with (folder / "what_if.json").open("w", encoding="utf-8") as stream:
                write_json(found, stream)
            if (folder / "report.html").is_file():
                write_report_page(run, folder)
        if as_json:
            write_json(found, sys.stdout)
        else:
            print_what_if(found, Console(markup=False, emoji=False))
        return 0

    _exit(work)
