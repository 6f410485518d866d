"""Matmul objects: C = A · B (+ bias), commanded from a kernel in pyasc's words.

In a cube-only kernel (`asc.jit(matmul_cube_only=True)`) the object runs on the core that calls it. In a mix kernel
each vector core commands its cube core: see `ascend_sim.adv.messages`. `docs/matmul.md` tells the whole story.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ascend_sim.adv.commands import Compute, ComputeAll, Finish
from ascend_sim.adv.settings import Settings, refuse, unsupported
from ascend_sim.adv.store import ATOMIC, Out
from ascend_sim.lang.enums import CubeFormat
from isa.arguments import is_whole
from isa.faults import fault
from isa.layout import round_up
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import float32


@dataclass(slots=True)
class MatrixOffset:
    """Where a block of C is: element offset, row, column, height and width, in elements."""

    offset: int
    row: int
    col: int
    height: int
    width: int


class MatmulIterator:
    """The blocks of a product, in order: `with mm.iterate() as count:` in a kernel that `asc.jit` marks.

    `for count in mm.iterate():` is the same in plain Python (an addition to pyasc).
    """

    def __init__(self, matmul: Matmul, add: bool, sync: bool) -> None:
        self._matmul, self._add, self._sync = matmul, add, sync

    def __iter__(self) -> Iterator[int]:
        return self._matmul._blocks(self._add, self._sync)

    def __enter__(self) -> int:
        fault(
            "ILLEGAL_PARAM",
            "with-iterate",
            "with mm.iterate() is a loop where asc.jit marks the function; this one has no asc.jit, and its body "
            "would run once. Mark it, or write: for count in mm.iterate():",
        )

    def __exit__(self, *_: object) -> None:
        return None


class Matmul(Settings):
    """A product of matrices with its operands' types, template and policy; `register_matmul` connects it."""

    # ---- computing ----------------------------------------------------------------------------

    def iterate(
        self, en_partial_sum: bool = False, sync: bool = True, local_c_matrix: Any = None
    ) -> MatmulIterator:
        """Go through the blocks of C: each round computes one, `get_tensor_c` fetches it.

        With `en_partial_sum` a block adds to what the last one left. With `sync` False all blocks are computed into the
        workspace (`set_workspace`) at once, and the rounds only count.
        """
        if local_c_matrix is not None:
            unsupported("iterate with a CO1 tensor of the kernel's own")
        self.connected("iterate")
        if not sync:
            self._compute_ahead()
        return MatmulIterator(self, bool(en_partial_sum), bool(sync))

    def _blocks(self, add: bool, sync: bool) -> Iterator[int]:
        job = self.product("iterate")
        link = self.connected("iterate")
        count = 0
        while self._number < job.blocks:
            if sync:
                link.send(Compute(job, self._number, add), wait=False)
            self.last = self._number
            self._number += 1
            yield count
            count += 1
        self._number = 0

    def _compute_ahead(self) -> None:
        job = self.product("iterate")
        if self._workspace is None:
            refuse(
                "matmul-no-workspace",
                "iterate(sync=False) keeps its blocks in GM: call set_workspace with "
                f"{job.blocks * job.base_m * job.base_n} elements of {self.c.dtype} before",
            )
        out = Out(self._workspace, CubeFormat.ND, job.base_n)
        self.taken = 0
        self.ahead, self._arrived = True, False
        self.connected("iterate").promise(ComputeAll(job, out, "iterate", apart=True))

    def next_ahead(self, name: str) -> GlobalTensor:
        """Return the next block of an asynchronous iterate, in the workspace; wait for it where nobody has."""
        job = self.product(name)
        if not self.ahead or self._workspace is None:
            refuse("matmul-wait", f"{name} with sync=False needs an iterate(sync=False) before")
        if self.taken >= job.blocks:
            refuse("matmul-wait", f"{name}: all {job.blocks} blocks of C have been fetched")
        if not self._arrived:
            self.connected(name).wait()
            self._arrived = True
        size = job.base_m * job.base_n
        start = self.taken * size
        self.taken += 1
        return self._workspace[start : start + size]

    def wait_get_tensor_c(self) -> None:
        """Let the vector pipe wait for a block that get_tensor_c(…, sync=False) copies to UB."""
        if self.unfetched:
            self.connected("wait_get_tensor_c").fetched()
            self.unfetched = False

    def async_get_tensor_c(self, c: LocalTensor) -> None:
        """Fetch the next block of an asynchronous iterate: get_tensor_c(c, sync=False)."""
        self.get_tensor_c(c, sync=False)

    def get_tensor_c(self, *args: Any, **kwargs: Any) -> GlobalTensor | None:
        """Fetch the block that iterate computed: (tensor, en_atomic=0, en_sequential_write=False, sync=True).

        `tensor` is in GM (with `optional_tensor` in UB as well) or in UB. Without a tensor and with sync=False, return
        where in the workspace the next block of an asynchronous iterate is.
        """
        from ascend_sim.adv.fetch import get_tensor_c  # noqa: PLC0415  it knows this class

        return get_tensor_c(self, *args, **kwargs)

    def iterate_all(
        self,
        tensor: Any,
        en_atomic: int = 0,
        sync: bool = True,
        en_sequential_write: bool | None = None,
        wait_iterate_all: bool | None = None,
        fake_msg: bool | None = None,
    ) -> None:
        """Compute all blocks of C and send each to its place in `tensor`, this core's part of C in GM.

        With `sync` False the vector core does not wait; `wait_iterate_all` True announces a later `wait_iterate_all`.
        """
        name = "iterate_all"
        link = self.connected(name)
        if wait_iterate_all and sync:
            refuse("matmul-wait", f"{name}: wait_iterate_all goes with sync=False")
        if fake_msg:
            unsupported(f"{name} with fake_msg")
        job = self.product(name)
        if isinstance(tensor, LocalTensor):
            from ascend_sim.adv.fetch import all_to_local  # noqa: PLC0415  it knows this class

            all_to_local(self, link, job, tensor, en_atomic)
            return
        out = self.out(tensor, en_atomic, bool(en_sequential_write), name)
        command = ComputeAll(job, out, name)
        if wait_iterate_all:
            link.promise(command)
        else:
            link.send(command, wait=sync)
        self._number = 0

    def wait_iterate_all(self) -> None:
        """Wait for an iterate_all with sync=False and wait_iterate_all=True: its C is in GM from here on."""
        self.connected("wait_iterate_all").wait()

    def out(self, tensor: Any, atomic: Any, sequential: bool, name: str) -> Out:
        """Return a destination in GM."""
        if not isinstance(tensor, GlobalTensor):
            refuse("matmul-position", f"{name}: C must be a GlobalTensor here, got {tensor!r}")
        if tensor.dtype is not self.c.dtype:
            refuse(
                "matmul-dtype",
                f"{name}: {tensor.name} is {tensor.dtype}, the MatmulType of C says {self.c.dtype}",
                tensor.name,
            )
        if not is_whole(atomic) or not 0 <= atomic < len(ATOMIC):
            refuse(
                "matmul-atomic",
                f"{name}: en_atomic is {atomic!r}; 0 plain, 1 add, 2 maximum, 3 minimum",
            )
        m, n, _, _, kc = self._org
        nz = self.c.format == CubeFormat.NZ
        return Out(
            tensor,
            self.c.format,
            round_up(m, 16) if nz else kc or n,
            int(atomic),
            sequential,
            nz and self.config.is_enable_channel_split and self.c.dtype is float32,
        )

    def get_offset_c(self) -> MatrixOffset:
        """Return where the block that iterate computed last lies in this core's part of C."""
        job = self.product("get_offset_c")
        row, column = job.place(self.last)
        top, left = row * job.base_m, column * job.base_n
        pitch = self._org[4] or self._org[1]
        return MatrixOffset(
            top * pitch + left,
            top,
            left,
            min(job.base_m, job.m - top),
            min(job.base_n, job.n - left),
        )

    def end(self) -> None:
        """Give up what the object holds of the cube core, so that another object may compute."""
        self.connected("end").send(Finish(), wait=False)
        self._number = 0

    # ---- what is not simulated ------------------------------------------------------------------

    def set_self_define_data(self, data_ptr: Any) -> None:
        """Refuse: callback functions replace parts of the library in C++."""
        unsupported("set_self_define_data: callback functions")

    def set_user_def_info(self, tiling_ptr: Any) -> None:
        """Refuse: callback functions replace parts of the library in C++."""
        unsupported("set_user_def_info: callback functions")

    def set_sparse_index(self, index_global: Any) -> None:
        """Refuse: sparse products are not simulated."""
        unsupported("set_sparse_index: sparse products")
