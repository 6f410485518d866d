"""register_matmul: connecting a Matmul object to a cube core."""

from __future__ import annotations

from typing import Any

from ascend_sim.adv.commands import Command
from ascend_sim.adv.cube import CubeUnit
from ascend_sim.adv.link import Link
from ascend_sim.adv.matmul import Matmul
from ascend_sim.adv.memory import CubeMemory
from ascend_sim.adv.messages import MessageLink, serve
from ascend_sim.adv.records import TCubeTiling
from ascend_sim.adv.settings import unsupported
from ascend_sim.cross_core import CUBE_READY
from ascend_sim.lang.pipe import TPipe
from ascend_sim.lang.queues import program
from ascend_sim.placement import KernelType
from ascend_sim.program import Program
from isa.faults import fault
from isa.types import CoreKind, DType

MAX_OBJECTS = 4
"""Matmul objects that one kernel may have."""


class DirectLink:
    """An object that runs on the cube core that calls it."""

    on_cube_core = True

    def __init__(self, unit: CubeUnit) -> None:
        self._unit = unit

    def send(self, command: Command, *, wait: bool) -> None:
        """Issue a command's instructions."""
        command.run(self._unit)

    def promise(self, command: Command) -> None:
        """Issue a command's instructions."""
        command.run(self._unit)

    def wait(self) -> None:
        """Nothing to wait for: the kernel's own flags order what follows."""

    def lend(self, tensor: Any, count: int, area: str) -> Any:
        """Refuse: a cube core has no UB."""
        fault(
            "ILLEGAL_PARAM",
            "matmul-position",
            f"Matmul: {tensor.name} is in {tensor.space.name}; in a cube-only kernel operands are in GM",
            tensor.name,
        )

    def fetch(self, *_: Any) -> None:
        """Refuse: a cube core has no UB."""
        unsupported("a result in UB in a cube-only kernel")

    fetched = wait

    def area(self, name: str, dtype: DType, count: int) -> Any:
        """Refuse: there is no workspace."""
        unsupported(f"a workspace for {name} in a cube-only kernel")


def register_matmul(
    pipe: TPipe, workspace: Any, matmul: Matmul, tiling: TCubeTiling | None = None
) -> None:
    """Connect a Matmul object to its cube core; `tiling` may come later, with `init`.

    In a mix kernel `workspace` is GM for messages and results, and the cube core stays in this call: it serves its
    vector cores until their kernels end.
    """
    if not isinstance(pipe, TPipe):
        fault(
            "ILLEGAL_PARAM",
            "matmul-register",
            f"register_matmul(pipe, workspace, matmul, tiling): pipe must be a TPipe, got {pipe!r}",
        )
    if not isinstance(matmul, Matmul):
        fault(
            "ILLEGAL_PARAM",
            "matmul-register",
            f"register_matmul(pipe, workspace, matmul, tiling): matmul must be a Matmul, got {matmul!r}",
        )
    stream = program()
    kind = stream.session.kernel_type
    if stream.core_kind is CoreKind.AIC and kind in (KernelType.AIC_ONLY, KernelType.MIX_AIC_1_0):
        unit = stream.libraries.get("matmul")
        if unit is None:
            unit = stream.libraries["matmul"] = CubeUnit(stream, CubeMemory(stream, pipe))
            stream.closing.append(unit.close)
        link: Link = DirectLink(unit)
        matmul._link = link
    elif stream.core_kind is CoreKind.AIC:
        serve(stream, CubeUnit(stream, CubeMemory(stream, pipe)))
    elif kind in (KernelType.MIX_AIC_1_1, KernelType.MIX_AIC_1_2):
        _connect(stream, workspace, matmul)
    else:
        fault(
            "HOST",
            "matmul-kernel-type",
            f"register_matmul: a {kind.name} kernel has no cube core. Launch it as MIX_AIC_1_2 (what a kernel with a "
            f"Matmul object is where asc.jit says no kernel_type), or with matmul_cube_only=True",
        )
    if tiling is not None:
        matmul.init(tiling)


def _connect(stream: Program, workspace: Any, matmul: Matmul) -> None:
    """Connect an object of a vector core; the first one waits for the cube core, and the kernel's end says goodbye."""
    number = stream.libraries.get("matmul objects", 0)
    if number == MAX_OBJECTS:
        fault(
            "ILLEGAL_PARAM",
            "matmul-register",
            f"register_matmul: a kernel may have {MAX_OBJECTS} Matmul objects",
        )
    stream.libraries["matmul objects"] = number + 1
    link = MessageLink(stream, workspace, number)
    if number == 0:
        stream.cross_wait(CUBE_READY)
        stream.closing.append(link.quit)
    matmul._link = link
