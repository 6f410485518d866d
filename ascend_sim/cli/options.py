"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[
    str, typer.Argument(metavar="OP_OR_FILE", help="An operator's name, or a Python file.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- ARGS", help="Arguments of the Python file itself.", show_default=False
    ),
]
ChipOption = Annotated[
    str | None,
    typer.Option("--chip", metavar="NAME", help="Chip (see `chips`), or the path of a YAML file."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A tiling constant of the operator, or a file's constant in capitals; repeatable.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of the data."),
]
CoresOption = Annotated[
    int | None, typer.Option("--cores", metavar="N", min=1, help="Cores that the platform has.")
]
NumericsOption = Annotated[
    str | None,
    typer.Option("--numerics", metavar="on|off|exact", help="Compute the numbers, or time only."),
]
ChecksOption = Annotated[
    str | None,
    typer.Option(
        "--checks",
        metavar="error|collect|off",
        help="Stop at the first finding, collect all, or none.",
    ),
]
L2Option = Annotated[
    str | None,
    typer.Option(
        "--l2",
        metavar="cold|warm|dirty",
        help="L2 at the launch: empty, holding the inputs, or full of what others wrote.",
    ),
]
AutoSyncOption = Annotated[
    str | None,
    typer.Option(
        "--auto-sync", metavar="on|off", help="Automatic synchronisation, whatever the kernel says."
    ),
]
InputOption = Annotated[
    Path | None,
    typer.Option("--input", metavar="FILE.npz", help="Tensors of the operator, by name."),
]
KernelOption = Annotated[
    str | None, typer.Option("--kernel", metavar="NAME", help="Of a file: the kernel to report.")
]
AdversaryOption = Annotated[
    int | None,
    typer.Option(
        "--adversary",
        metavar="N",
        min=1,
        help="Run each launch under N legal but hostile timings too: does anything depend on time?",
    ),
]
DoctorOption = Annotated[
    str | None,
    typer.Option(
        "--doctor",
        metavar="on|off",
        help="Seek an edit that cures what is wrong with synchronisation, by running with it (default on).",
    ),
]
CoverageOption = Annotated[
    bool,
    typer.Option(
        "--coverage",
        help="Show what of each tensor was read, written, written twice and left out, by core.",
    ),
]
BlameOption = Annotated[
    bool,
    typer.Option(
        "--blame",
        help="Run each launch again beside the same one in float32: where do NaN, infinities and lost digits begin?",
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="FILE.npz",
        help="Right values of outputs, by their parameters' names: what do wrong elements come through?",
    ),
]
