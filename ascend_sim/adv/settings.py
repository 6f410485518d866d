"""What a Matmul object is told: operands, sizes, bias, scales; and the product that follows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from ascend_sim.adv.config import MatmulConfig, MatmulType
from ascend_sim.adv.cube import MAX_SLOTS
from ascend_sim.adv.job import Job, Matrix, Quant
from ascend_sim.adv.link import Link
from ascend_sim.adv.records import TCubeTiling
from ascend_sim.adv.store import quant_mode
from ascend_sim.lang.enums import CubeFormat, IterateOrder, MatmulPolicy
from isa.arguments import is_whole
from isa.cube import RESULT
from isa.faults import fault
from isa.layout import round_up
from isa.tensor import GlobalAddress, GlobalTensor, LocalTensor
from isa.types import TPosition, float16, float32, uint64

_UB = (TPosition.VECIN, TPosition.VECOUT, TPosition.VECCALC)


class Settings:
    """All that is said of a product before it is computed: the half of a Matmul object that issues nothing."""

    def __init__(
        self,
        a: MatmulType,
        b: MatmulType,
        c: MatmulType,
        bias: MatmulType | None = None,
        matmul_config: MatmulConfig | None = None,
        matmul_policy: MatmulPolicy | None = MatmulPolicy.MatmulPolicy,
    ) -> None:
        for what, given in (("a", a), ("b", b), ("c", c)):
            if not isinstance(given, MatmulType):
                refuse("matmul-type", f"Matmul: {what} must be a MatmulType, got {given!r}")
        if a.dtype not in RESULT or b.dtype is not a.dtype:
            refuse(
                "matmul-dtype",
                f"Matmul: A is {a.dtype}, B is {b.dtype}; both have one type of "
                f"{', '.join(one.name for one in RESULT)}",
            )
        self.a, self.b, self.c = a, b, c
        self.bias = bias
        self.config = matmul_config if matmul_config is not None else MatmulConfig()
        if self.config.enable_mix_dual_master:
            unsupported("enable_mix_dual_master: both kinds of core running the kernel as masters")
        if matmul_policy not in (None, MatmulPolicy.MatmulPolicy):
            unsupported(f"the policy {MatmulPolicy(matmul_policy).name}")
        self._link: Link | None = None
        self._tiling: TCubeTiling | None = None
        self._operands: dict[str, Any] = {}
        self._turned = {"a": False, "b": False}
        self._bias: Any = None
        self._quant: Quant | None = None
        self._hf32 = (False, False)
        self._org = (0, 0, 0, 0, 0)
        self._single = (0, 0, 0)
        self._workspace: GlobalTensor | None = None
        self._job: Job | None = None
        self._number = 0
        self.last = 0
        self.taken = 0
        self.batch = (0, 0)
        self._batches_taken = 0
        self.ahead = False
        """An asynchronous iterate has been started; its blocks are, or will be, in the workspace."""
        self._arrived = True
        self.unfetched = False
        """A block is on its way to UB, and wait_get_tensor_c has not been called."""

    # ---- setting up ---------------------------------------------------------------------------

    @property
    def tiling(self) -> TCubeTiling:
        """The tiling; fault where there is none."""
        if self._tiling is None:
            refuse("matmul-tiling", "Matmul: no tiling; give one to register_matmul or call init")
        return self._tiling

    def init(self, tiling: TCubeTiling) -> None:
        """Take a tiling; sizes set by other calls before are forgotten."""
        if not hasattr(tiling, "base_m"):
            refuse("matmul-tiling", f"Matmul.init takes a TCubeTiling, got {tiling!r}")
        for name in (
            "single_core_m",
            "single_core_n",
            "single_core_k",
            "base_m",
            "base_n",
            "base_k",
        ):
            if self._size(tiling, name) < 1:
                refuse(
                    "matmul-tiling",
                    f"Matmul.init: {name} of the tiling is {getattr(tiling, name)}; did get_tiling return 0? "
                    f"(it returns -1 where a product cannot be cut, and the log says why)",
                )
        self._tiling = tiling
        self._org = (tiling.m, tiling.n, tiling.k_a, tiling.k_b, 0)
        self._single = (
            self._size(tiling, "single_core_m"),
            self._size(tiling, "single_core_n"),
            self._size(tiling, "single_core_k"),
        )
        self._changed()

    def _size(self, tiling: TCubeTiling, name: str) -> int:
        """Return a size of the template, where it fixes one, else of the tiling."""
        fixed = getattr(self.config, name.replace("base_", "basic_"), 0)
        return int(fixed or getattr(tiling, name))

    def set_org_shape(
        self,
        org_m: int,
        org_n: int,
        org_ka: int,
        org_kb: int | None = None,
        org_kc: int | None = None,
    ) -> None:
        """Set the sizes of the whole matrices in memory, from which the distance of their rows follows."""
        self._org = (org_m, org_n, org_ka, org_ka if org_kb is None else org_kb, org_kc or 0)
        self._changed()

    def set_single_shape(self, single_m: int, single_n: int, single_k: int) -> None:
        """Set the size of this core's part."""
        for what, value in (("single_m", single_m), ("single_n", single_n), ("single_k", single_k)):
            if not is_whole(value) or value < 1:
                refuse("matmul-size", f"set_single_shape: {what} must be at least 1, got {value!r}")
        self._single = (int(single_m), int(single_n), int(single_k))
        self._changed()

    def set_tail(self, tail_m: int = -1, tail_n: int = -1, tail_k: int = -1) -> None:
        """Set the size of this core's part; −1 leaves one as it is."""
        given = (tail_m, tail_n, tail_k)
        self.set_single_shape(
            *(old if new == -1 else new for old, new in zip(self._single, given, strict=True))
        )

    def set_tensor_a(self, *args: Any, **kwargs: Any) -> None:
        """Set A: (tensor, transpose=False), or (scalar) for a matrix of one value."""
        self._set_operand("a", self.a, *args, **kwargs)

    def set_tensor_b(self, *args: Any, **kwargs: Any) -> None:
        """Set B: (tensor, transpose=False), or (scalar) for a matrix of one value."""
        self._set_operand("b", self.b, *args, **kwargs)

    def _set_operand(
        self,
        which: str,
        kind: MatmulType,
        tensor: Any = None,
        transpose: Any = False,
        *,
        scalar: Any = None,
    ) -> None:
        name = f"set_tensor_{which}"
        given = tensor if tensor is not None else scalar
        if not isinstance(given, (GlobalTensor, LocalTensor)):
            unsupported(f"{name} with a number")
        self._check_tensor(name, given, kind)
        if transpose and not kind.is_trans:
            refuse(
                "matmul-transpose",
                f"{name}: transpose is True, but the MatmulType says is_trans=False; transposition has to be "
                f"announced there",
            )
        self._operands[which] = given
        self._turned[which] = bool(transpose)
        self._changed()

    def _check_tensor(self, name: str, tensor: Any, kind: MatmulType) -> None:
        local = isinstance(tensor, LocalTensor)
        if tensor.dtype is not kind.dtype:
            refuse(
                "matmul-dtype",
                f"{name}: {tensor.name} is {tensor.dtype}, the MatmulType says {kind.dtype}",
                tensor.name,
            )
        if local != (kind.position in _UB) and not (local and kind.position is TPosition.CO1):
            where = tensor.space.name
            refuse(
                "matmul-position",
                f"{name}: {tensor.name} is in {where}, the MatmulType says {kind.position.name}",
                tensor.name,
            )

    def set_bias(self, tensor: Any) -> None:
        """Set the bias, one value a column; the tiling must say that there is one."""
        kind = self.bias
        if kind is None:
            refuse("matmul-no-bias", "set_bias: the Matmul object was made without a bias type")
        if self._tiling is not None and not self._tiling.is_bias:
            refuse(
                "matmul-no-bias",
                "set_bias: is_bias of the tiling is 0; call enable_bias(True) of the host's tiling",
            )
        self._check_tensor("set_bias", tensor, kind)
        sums = RESULT[self.a.dtype]
        if kind.dtype is not sums and not (sums is float32 and kind.dtype is float16):
            refuse(
                "matmul-dtype",
                f"set_bias: the bias is {kind.dtype}, sums of products of {self.a.dtype} are {sums}; it must be "
                f"{sums}{' or float16' if sums is float32 else ''}",
            )
        self._bias = tensor
        self._changed()

    def disable_bias(self) -> None:
        """Compute without a bias from now on."""
        self._bias = None
        self._changed()

    def set_hf32(self, enable_hf32: bool = False, trans_mode: int = 0) -> None:
        """Round float32 operands to HF32 (twice the rate), to nearest even (`trans_mode` 0) or toward zero (1)."""
        self._hf32 = (bool(enable_hf32), bool(trans_mode))
        self._changed()

    def set_quant_scalar(self, quant_scalar: int) -> None:
        """Set one scale for all of C: its float32 bits (and, above them, fixpipe's offset field)."""
        if not is_whole(quant_scalar) or not 0 <= quant_scalar < 1 << 64:
            refuse(
                "matmul-scale",
                f"set_quant_scalar takes the bits of a float32 as a whole number, got {quant_scalar!r}; "
                f"asc.quant_parameter(scale) makes them",
            )
        self._quant = Quant(scalar=int(quant_scalar))
        self._changed()

    def set_quant_vector(self, quant_vector: GlobalTensor) -> None:
        """Set a scale for each column of this core's part: 64-bit words as fixpipe takes them."""
        if not isinstance(quant_vector, GlobalTensor) or quant_vector.dtype is not uint64:
            refuse("matmul-scale", "set_quant_vector takes a GlobalTensor of uint64")
        self._quant = Quant(vector=quant_vector)
        self._changed()

    def set_workspace(self, addr: GlobalTensor | GlobalAddress, size: int | None = None) -> None:
        """Set where an asynchronous iterate keeps its blocks: single_core_m × single_core_n elements of C's type."""
        if isinstance(addr, GlobalAddress):
            tensor = GlobalTensor()
            tensor.set_global_buffer(addr, size)
        else:
            tensor = addr
        self._workspace = tensor

    def set_batch_num(self, batch_a: int, batch_b: int) -> None:
        """Set how many matrices of A and of B one iterate_batch takes (cube-only kernels)."""
        self.batch = (int(batch_a), int(batch_b))

    def _changed(self) -> None:
        """Forget the product that was under way: something about it is new."""
        self._job = None
        self._number = self.taken = 0
        self.ahead = False

    # ---- the product --------------------------------------------------------------------------

    def connected(self, name: str) -> Link:
        """Return the way to the cube core; fault before register_matmul and without a tiling."""
        if self._link is None:
            refuse(
                "matmul-not-registered",
                f"{name}: the Matmul object is not registered; call register_matmul(pipe, workspace, mm, tiling) first",
            )
        if self._tiling is None:
            refuse(
                "matmul-tiling",
                f"{name}: the Matmul object has no tiling; give one to register_matmul or call init",
            )
        return self._link

    def product(self, name: str) -> Job:
        """Return the product as it is set now."""
        if self._job is None:
            link = self.connected(name)
            self._job = self._make_job(name, link)
        return self._job

    def _matrix(self, which: str, kind: MatmulType, name: str, link: Link) -> Matrix:
        given = self._operands.get(which)
        if given is None:
            refuse("matmul-no-operand", f"{name}: set_tensor_{which} has not been called")
        m, n, ka, kb, _ = self._org
        turned, left = self._turned[which], which == "a"
        rows, columns = (m, ka) if left else (kb, n)
        if turned:
            rows, columns = columns, rows
        if isinstance(given, LocalTensor):
            size, depth = (self._single[0] if left else self._single[1]), self._single[2]
            rows, columns = (size, depth) if left != turned else (depth, size)
            c0 = 32 // given.dtype.size
            rows, columns = round_up(rows, 16), round_up(columns, c0)
            given = link.lend(given, min(rows * columns, given.get_size()), which)
        pitch = round_up(rows, 16) if kind.format == CubeFormat.NZ else columns
        return Matrix(given, kind.format, pitch, turned, left)

    def _make_job(self, name: str, link: Link) -> Job:
        tiling, config = self._tiling, self.config
        assert tiling is not None
        m, n, k = self._single
        a = self._matrix("a", self.a, name, link)
        b = self._matrix("b", self.b, name, link)
        bias = self._bias
        if isinstance(bias, LocalTensor):
            bias = link.lend(bias, min(round_up(n, 16), bias.get_size()), "bias")
        base = [self._size(tiling, f"base_{axis}") for axis in "mnk"]
        self._check_base(name, base, a, b)
        steps = -(-k // base[2])
        step_m, step_n = config.step_m or tiling.step_m or 1, config.step_n or tiling.step_n or 1
        step_ka, slots_a = _slots(tiling.depth_a1, step_m, tiling.step_k_a, steps)
        step_kb, slots_b = _slots(tiling.depth_b1, step_n, tiling.step_k_b, steps)
        order = config.iterate_order
        if order == IterateOrder.UNDEF:
            order = IterateOrder(tiling.iterate_order) if tiling.iterate_order in (0, 1) else order
        job = Job(
            a=a,
            b=b,
            bias=bias,
            m=m,
            n=n,
            k=k,
            base_m=base[0],
            base_n=base[1],
            base_k=base[2],
            step_m=step_m,
            step_n=step_n,
            step_ka=step_ka,
            step_kb=step_kb,
            slots_a=slots_a,
            slots_b=slots_b,
            buffers_a2=tiling.db_l0a if tiling.db_l0a > 0 else 2,
            buffers_b2=tiling.db_l0b if tiling.db_l0b > 0 else 2,
            buffers_c=tiling.db_l0c if tiling.db_l0c > 0 else 1,
            order=order,
            quant=replace(self._quant) if self._quant is not None else None,
            hf32=self._hf32[0],
            hf32_toward_zero=self._hf32[1],
            pad_columns=self.c.format == CubeFormat.NZ,
            unit_flags=config.en_unit_flag,
        )
        quant_mode(job.result, self.c.dtype, job, name)
        return job

    def _check_base(self, name: str, base: list[int], a: Matrix, b: Matrix) -> None:
        wide = a.c0 == 32
        units = (32 if wide and a.turned else 16, 32 if wide and not b.turned else 16, a.c0)
        for axis, size, unit in zip("mnk", base, units, strict=True):
            if size % unit:
                refuse(
                    "matmul-tiling",
                    f"{name}: base_{axis} is {size}; for {self.a.dtype} operands as they are set it must be a "
                    f"multiple of {unit}",
                )


def _slots(depth: int, step: int, step_k: int, steps: int) -> tuple[int, int]:
    """Return how many base blocks of k a copy to L1 brings, and how many buffers of such copies there are."""
    step_k = min(max(step_k, 1), steps)
    slots = max(depth, 1) // (step * step_k)
    if slots > MAX_SLOTS:
        slots = 2
        step_k = min(max(depth // (slots * step), 1), steps)
    return step_k, max(slots, 1)


def refuse(code: str, message: str, tensor: str = "") -> NoReturn:
    """Fault: a Matmul object cannot do this, or not yet."""
    fault("ILLEGAL_PARAM", code, message, tensor)


def unsupported(what: str) -> NoReturn:
    """Fault: the library has this, the simulator has not."""
    fault("ILLEGAL_PARAM", "unsupported-form", f"Matmul: {what} is not simulated")
