"""Fetching results of a Matmul object: blocks to GM, to UB, or both; all of C to UB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_sim.adv.commands import ComputeAll, Store
from ascend_sim.adv.store import Out
from ascend_sim.lang.enums import CubeFormat
from isa.faults import fault
from isa.layout import round_up
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES

if TYPE_CHECKING:
    from ascend_sim.adv.job import Job
    from ascend_sim.adv.link import Link
    from ascend_sim.adv.matmul import Matmul

NAME = "get_tensor_c"


def get_tensor_c(
    mm: Matmul,
    tensor: Any = None,
    en_atomic: int = 0,
    en_sequential_write: bool = False,
    sync: bool = True,
    optional_tensor: Any = None,
) -> GlobalTensor | None:
    """See `Matmul.get_tensor_c`."""
    link = mm.connected(NAME)
    job = mm.product(NAME)
    if tensor is None:
        if sync:
            fault(
                "ILLEGAL_PARAM",
                "matmul-wait",
                f"{NAME} without a tensor returns a place in the workspace: it needs sync=False and an asynchronous "
                f"iterate before",
            )
        return mm.next_ahead(NAME)
    if mm.ahead:
        _from_workspace(mm, link, job, tensor, sync)
        return None
    if isinstance(tensor, LocalTensor):
        _to_local(mm, link, job, tensor, bool(en_sequential_write), None)
        return None
    out = mm.out(tensor, en_atomic, bool(en_sequential_write), NAME)
    if optional_tensor is not None:
        _to_local(mm, link, job, optional_tensor, bool(en_sequential_write), out)
        return None
    link.send(Store(job, (out,), NAME), wait=sync)
    return None


def _check_local(mm: Matmul, tensor: Any, name: str) -> None:
    if not isinstance(tensor, LocalTensor) or tensor.dtype is not mm.c.dtype:
        fault(
            "ILLEGAL_PARAM",
            "matmul-dtype",
            f"{name}: the result in UB must be a LocalTensor of {mm.c.dtype}, as the MatmulType of C says, got "
            f"{tensor!r}",
        )


def _room(tensor: LocalTensor, need: int, name: str, what: str) -> None:
    if tensor.length < need:
        fault(
            "BOUNDS",
            "matmul-room",
            f"{name}: {what} takes {need} bytes of {tensor.name}, which has {tensor.length}",
            tensor.name,
        )


def _padded(columns: int, target: LocalTensor) -> int:
    """Return columns up to whole data blocks: what a row of a result takes in UB."""
    per = BLOCK_BYTES // target.dtype.size
    return round_up(columns, per)


def _to_local(
    mm: Matmul,
    link: Link,
    job: Job,
    target: Any,
    sequential: bool,
    also: Out | None,
) -> None:
    """Send the block that iterate computed to the workspace, and copy it to UB."""
    _check_local(mm, target, NAME)
    row, column = job.place(mm.last)
    rows = min(job.base_m, job.m - row * job.base_m)
    columns = min(job.base_n, job.n - column * job.base_n)
    nz = mm.c.format == CubeFormat.NZ
    area = link.area("result", target.dtype, round_up(job.base_m, 16) * round_up(job.base_n, 16))
    pitch = round_up(rows, 16) if nz else job.base_n
    out = Out(area, mm.c.format, pitch, 0, True)
    link.send(Store(job, (out, *([also] if also is not None else [])), NAME), wait=True)
    if not sequential:
        target = target[_place(job, row, column, target) :]
    if nz:
        _fetch_groups(link, job, target, area, rows, columns)
    else:
        columns = _padded(columns, target)
        _room(target, rows * columns * target.dtype.size, NAME, "the block")
        link.fetch(target, area, rows, columns, pitch)
    link.fetched()


def _place(job: Job, row: int, column: int, target: LocalTensor) -> int:
    """Return where a block starts in a local C of single_core_m × single_core_n; fault where it is no run of bytes."""
    if job.columns > 1:
        fault(
            "ILLEGAL_PARAM",
            "unsupported-form",
            f"{NAME}: to a place inside a larger C in UB (en_sequential_write=False) is simulated where one block "
            f"is as wide as C; here C has {job.columns} blocks side by side. Pass en_sequential_write=True and a "
            f"tensor of one block",
        )
    width = round_up(job.n * target.dtype.size, BLOCK_BYTES) // target.dtype.size
    return row * job.base_m * width


def _fetch_groups(
    link: Link, job: Job, target: LocalTensor, area: GlobalTensor, rows: int, columns: int
) -> None:
    """Copy a block in NZ: groups of 16 columns, each with the rows of a whole base block in the workspace."""
    groups, height = -(-columns // 16), round_up(job.base_m, 16)
    _room(target, groups * rows * 16 * target.dtype.size, NAME, "the block")
    link.fetch(target, area, groups, rows * 16, height * 16)


def all_to_local(mm: Matmul, link: Link, job: Job, target: LocalTensor, atomic: Any) -> None:
    """Compute all of C into the workspace, and copy it to UB."""
    name = "iterate_all"
    _check_local(mm, target, name)
    if atomic:
        fault(
            "ILLEGAL_PARAM",
            "matmul-atomic",
            f"{name}: en_atomic is for results in GM; {target.name} is in UB",
        )
    nz = mm.c.format == CubeFormat.NZ
    height, width = round_up(job.m, 16), round_up(job.n, 16)
    area = link.area("result", target.dtype, height * width)
    out = Out(area, mm.c.format, height if nz else width)
    link.send(ComputeAll(job, out, name), wait=True)
    if nz:
        link.fetch(target, area, width // 16, height * 16, height * 16)
    else:
        columns = _padded(job.n, target)
        _room(target, job.m * columns * target.dtype.size, name, "C")
        link.fetch(target, area, job.m, columns, width)
    link.fetched()


def _from_workspace(mm: Matmul, link: Link, job: Job, target: Any, sync: bool) -> None:
    """Copy the next block of an asynchronous iterate to UB."""
    number = mm.taken
    source = mm.next_ahead(NAME)
    _check_local(mm, target, NAME)
    row, column = job.place(number)
    rows = min(job.base_m, job.m - row * job.base_m)
    columns = _padded(min(job.base_n, job.n - column * job.base_n), target)
    _room(target, rows * columns * target.dtype.size, NAME, "the block")
    link.fetch(target, source, rows, columns, job.base_n)
    if sync:
        link.fetched()
    else:
        mm.unfetched = True
