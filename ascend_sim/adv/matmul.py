"""Matmul objects: C = A · B (+ bias), commanded from a kernel in pyasc's words.

In a cube-only kernel (`asc.jit(matmul_cube_only=True)`) the object runs on the core that calls it. In a mix kernel
each vector core commands its cube core: see `ascend_sim.adv.messages`. `docs/matmul.md` tells the whole story.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ascend_sim.adv.batch import products
from ascend_sim.adv.commands import Compute, ComputeAll, Finish
from ascend_sim.adv.link import Link
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

    # ---- batches --------------------------------------------------------------------------------

    def iterate_batch(self, tensor: Any, *args: Any, **kwargs: Any) -> None:
        """Compute a batch of products into `tensor` in GM, each of single_core_m × single_core_n.

        (tensor, batch_a, batch_b, en_sequential_write, matrix_stride_a=0, matrix_stride_b=0, matrix_stride_c=0,
        en_partial_sum=None, en_atomic=None, sync=True, wait_iterate_batch=None); in a cube-only kernel, after
        `set_batch_num`, (tensor, en_partial_sum, en_atomic, en_sequential_write, matrix_stride_a=0, …).
        """
        name = "iterate_batch"
        given = _batch_arguments(self, name, args, kwargs)
        if given["en_partial_sum"]:
            unsupported(f"{name} with en_partial_sum")
        if not isinstance(tensor, GlobalTensor):
            unsupported(f"{name} with a result in UB")
        if given["en_sequential_write"]:
            refuse(
                "matmul-batch", f"{name}: en_sequential_write is False where the result goes to GM"
            )
        link = self.connected(name)
        commands = products(
            self, tensor, given["batch_a"], given["batch_b"], given["en_atomic"] or 0,
            (given["matrix_stride_a"], given["matrix_stride_b"], given["matrix_stride_c"]), name,
        )  # fmt: skip
        self._send_all(link, commands, given["sync"], bool(given["wait_iterate_batch"]))

    def _send_all(self, link: Link, commands: list[ComputeAll], sync: bool, later: bool) -> None:
        for command in commands[:-1]:
            link.send(command, wait=False)
        if later and not sync:
            link.promise(commands[-1])
        else:
            link.send(commands[-1], wait=sync)

    def wait_iterate_batch(self) -> None:
        """Wait for an iterate_batch or iterate_n_batch with sync=False and wait_iterate_batch=True."""
        self.connected("wait_iterate_batch").wait()

    def iterate_n_batch(
        self,
        batch_loop: int,
        batch_a: int,
        batch_b: int,
        en_sequential_write: bool,
        matrix_stride_a: int = 0,
        matrix_stride_b: int = 0,
        matrix_stride_c: int = 0,
        sync: bool = True,
        wait_iterate_batch: bool = False,
    ) -> None:
        """Compute `batch_loop` batches into the workspace (`set_workspace`), one behind another."""
        name = "iterate_n_batch"
        if self._workspace is None:
            refuse(
                "matmul-no-workspace", f"{name} keeps its results in GM: call set_workspace before"
            )
        link = self.connected(name)
        size = max(batch_a, batch_b)
        commands = []
        for number in range(batch_loop):
            commands += products(
                self, self._workspace, batch_a, batch_b, 0,
                (matrix_stride_a, matrix_stride_b, matrix_stride_c), name, number * size,
            )  # fmt: skip
        self._batches_taken = 0
        self._send_all(link, commands, sync, wait_iterate_batch)

    def get_batch_tensor_c(self, *args: Any, **kwargs: Any) -> GlobalTensor | None:
        """Return where the next batch of iterate_n_batch is in the workspace: (batch_a, batch_b, …, sync=False)."""
        name = "get_batch_tensor_c"
        if kwargs.get("tensor") is not None or (args and isinstance(args[0], LocalTensor)):
            unsupported(f"{name} with a tensor in UB")
        batch_a, batch_b = (kwargs.get(what, value) for what, value in
                            zip(("batch_a", "batch_b"), (*args, 1, 1), strict=False))  # fmt: skip
        if self._workspace is None:
            refuse("matmul-no-workspace", f"{name}: iterate_n_batch has not been called")
        job = self.product(name)
        size = max(batch_a, batch_b) * job.m * job.n
        start = self._batches_taken * size
        self._batches_taken += 1
        return self._workspace[start : start + size]

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


_BATCH = ("batch_a", "batch_b", "en_sequential_write", "matrix_stride_a", "matrix_stride_b", "matrix_stride_c",
          "en_partial_sum", "en_atomic", "sync", "wait_iterate_batch")  # fmt: skip
_BATCH_OF_CUBE = ("en_partial_sum", "en_atomic", "en_sequential_write", "matrix_stride_a", "matrix_stride_b",
                  "matrix_stride_c")  # fmt: skip


def _batch_arguments(
    mm: Matmul, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return iterate_batch's arguments by name, whichever of its two forms was used."""
    cube = not ({"batch_a", "batch_b", "sync", "wait_iterate_batch"} & set(kwargs)) and (
        (bool(args) and isinstance(args[0], bool)) or (not args and "en_partial_sum" in kwargs)
    )
    names = _BATCH_OF_CUBE if cube else _BATCH
    given: dict[str, Any] = dict.fromkeys(_BATCH)
    given |= {"matrix_stride_a": 0, "matrix_stride_b": 0, "matrix_stride_c": 0, "sync": True}
    unknown = [one for one in kwargs if one not in names]
    if unknown or len(args) > len(names):
        refuse(
            "form", f"{name} takes (tensor, {', '.join(names)}), got {', '.join(unknown) or 'more'}"
        )
    given |= dict(zip(names, args, strict=False)) | kwargs
    if cube:
        given["batch_a"], given["batch_b"] = mm.batch
        if not all(mm.batch):
            refuse("matmul-batch", f"{name}: call set_batch_num(batch_a, batch_b) before")
    return given
