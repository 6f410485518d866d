"""Mutants of laser_attention_grad: one synchronisation taken out of the kernel, or changed, wherever its line runs.

A mutant is named by the places in the kernel's own files, innermost first: a barrier behind a helper counts once for
each of the helper's callers.
"""

from __future__ import annotations

import dataclasses
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ascend_sim import Run, asc
from ascend_sim.errors import KernelError
from ops import Context, create_operation
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad.problem import BFLOAT16
from ops.laser_attention_grad.sizes import Sizes
from ops.tensor import DTYPES

FOLDER = str(Path(data.__file__).parent)
WATCHED = (
    "set_flag", "wait_flag", "pipe_barrier", "cross_core_set_flag", "cross_core_wait_flag", "sync_all", "mmad",
    "fixpipe",
)  # fmt: skip

Site = tuple[str, tuple[tuple[str, str, int], ...]]
"""The call's name and its places (file, function, line), innermost first; helpers of one line have their caller too."""

HELPERS = ("_v", "_cast", "_spread")


def site_of(name: str) -> Site:
    """Return the site of a watched call that is being made."""
    frame = sys._getframe(2)
    places = [_place(frame)]
    while frame.f_code.co_name in HELPERS:
        assert frame.f_back is not None
        frame = frame.f_back
        places.append(_place(frame))
    return name, tuple(places)


def _place(frame: Any) -> tuple[str, str, int]:
    code = frame.f_code
    return Path(code.co_filename).name, code.co_name, frame.f_lineno


def label(site: Site) -> str:
    """Return a site's outermost place as text that does not change with its line: file, function, the line itself."""
    file, function, line = site[1][-1]
    return f"{file} {function}: {linecache.getline(f'{FOLDER}/{file}', line).strip()}"


def flag_groups(sites: dict[Site, set[tuple[Any, ...]]]) -> dict[tuple[str, str, int], set[Site]]:
    """Return the sets and waits of each flag by file, event and id; the two files of the BAND cube count as one."""
    groups: dict[tuple[str, str, int], set[Site]] = {}
    for site, calls in sites.items():
        if site[0] in ("set_flag", "wait_flag"):
            for event, event_id in calls:
                key = (site[1][0][0].replace("_192", ""), event.name, event_id)
                groups.setdefault(key, set()).add(site)
    return groups


@contextmanager
def watching(change: Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]) -> Iterator[None]:
    """Let `change` decide about each watched call of the kernel: other arguments, or None to leave the call out."""
    kept = {name: getattr(asc, name) for name in WATCHED}

    def wrapper(name: str) -> Callable[..., None]:
        function = kept[name]

        def call(*args: Any, **keywords: Any) -> None:
            if not sys._getframe(1).f_code.co_filename.startswith(FOLDER):
                function(*args, **keywords)
                return
            changed = change(site_of(name), args)
            if changed is not None:
                function(*changed, **keywords)

        return call

    for name in WATCHED:
        setattr(asc, name, wrapper(name))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(asc, name, function)


@dataclasses.dataclass
class Outcome:
    """What a run of a mutant found: kinds of findings that count, messages, cycles (0 where it could not go on)."""

    kinds: set[str]
    messages: list[str]
    cycles: int


class Subject:
    """One problem on a few cores, without numbers."""

    def __init__(self, sizes: Sizes, *, mask: bool, window: int = 0, cores: int = 1) -> None:
        self.operation = create_operation(
            "LaserAttentionGradOperation",
            {
                "headNum": sizes.heads,
                "inputLayout": sizes.layout,
                "preTokens": window * 128 or sizes.seq,
            },
        )
        self.inputs = [
            np.zeros(desc.shape, DTYPES[desc.dtype]) for desc in data.descs(sizes, has_mask=mask)
        ]
        shapes = [desc.shape for desc in self.operation.infer_shape(self.inputs)]
        self.outputs = [np.zeros(shape, BFLOAT16) for shape in shapes]
        self.cores = cores

    def sites(self) -> dict[Site, set[tuple[Any, ...]]]:
        """Return every site of the kernel with the arguments that it is called with (tensors left out)."""
        found: dict[Site, set[tuple[Any, ...]]] = {}

        def note(site: Site, args: tuple[Any, ...]) -> tuple[Any, ...]:
            plain = tuple(arg for arg in args if not hasattr(arg, "dtype"))
            found.setdefault(site, set()).add(plain)
            return args

        with watching(note):
            self._run(checks="off")
        return found

    def run(self, change: Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]) -> Outcome:
        """Run a mutant with all checks."""
        with watching(change):
            try:
                run = self._run(checks="collect")
            except KernelError as error:
                return Outcome({error.finding.kind}, [str(error)], 0)
        counted = [finding for finding in run.findings if finding.kind not in ("INFO", "PERF")]
        kinds = {finding.kind for finding in counted if finding.code != "mask-bits"}
        return Outcome(kinds, [finding.message for finding in counted], run.cycles)

    def _run(self, checks: str) -> Run:
        context = Context(numerics="off", checks=checks, cores=self.cores)
        self.operation.setup(self.inputs, self.outputs, context)
        return self.operation.execute(self.inputs, self.outputs, context)


def without(*sites: Site) -> Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]:
    """Return the mutation that leaves out all calls of some sites."""
    gone = set(sites)
    return lambda site, args: None if site in gone else args


def without_flag(
    group: tuple[str, str, int], sites: set[Site]
) -> Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]:
    """Return the mutation that leaves out a flag altogether, its sets and its waits."""

    def change(at: Site, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        gone = at in sites and (args[0].name, args[1]) == group[1:]
        return None if gone else args

    return change


def without_cross_flag(
    flag_id: int,
) -> Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]:
    """Return the mutation that leaves out a flag between cores, its sets and its waits."""
    return lambda at, args: None if at[0].startswith("cross") and args[0] == flag_id else args


def without_unit_flag(site: Site) -> Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]:
    """Return the mutation that switches the unit flag of one Mmad or fixpipe off."""

    def change(at: Site, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if at != site:
            return args
        return tuple(
            dataclasses.replace(arg, unit_flag=0) if hasattr(arg, "unit_flag") else arg
            for arg in args
        )

    return change


def other_id(site: Site) -> Callable[[Site, tuple[Any, ...]], tuple[Any, ...] | None]:
    """Return the mutation that swaps ping and pong in one set or wait."""

    def change(at: Site, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (args[0], args[1] ^ 1) if at == site else args

    return change
