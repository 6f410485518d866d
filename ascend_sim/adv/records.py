"""The tiling structures that the host fills and a kernel reads, with pyasc's member names, order and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_sim.lang.structs import Field, Struct
from isa.types import float32, int32

_SIZES = (
    "used_core_num", "m", "n", "k_a", "k_b", "single_core_m", "single_core_n", "single_core_k", "base_m", "base_n",
    "base_k", "depth_a1", "depth_b1", "step_m", "step_n", "is_bias", "trans_length", "iterate_order", "share_mode",
    "share_l1_size", "share_l0c_size", "share_ub_size",
)  # fmt: skip
_BATCH = ("batch_m", "batch_n", "single_batch_m", "single_batch_n")
_STEPS = (
    "step_k_a", "step_k_b", "depth_a_l1_cache_ub", "depth_b_l1_cache_ub", "db_l0a", "db_l0b", "db_l0c",
    "a_layout_info_b", "a_layout_info_s", "a_layout_info_n", "a_layout_info_g", "a_layout_info_d",
    "b_layout_info_b", "b_layout_info_s", "b_layout_info_n", "b_layout_info_g", "b_layout_info_d",
    "c_layout_info_b", "c_layout_info_s1", "c_layout_info_n", "c_layout_info_g", "c_layout_info_s2", "batch_num",
)  # fmt: skip
_SOFTMAX = (
    "src_m", "src_k", "src_size", "out_max_m", "out_max_k", "out_max_size", "split_m", "split_k", "split_size",
    "reduce_m", "reduce_k", "reduce_size", "range_m", "tail_m", "tail_split_size", "tail_reduce_size",
)  # fmt: skip


def _members(*names: str, default: int = 0) -> dict[str, Field]:
    return {name: Field(int32, default) for name in names}


class _Members:
    """Says to a type checker that a structure's members are numbers."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class TCubeTiling(Struct, _Members, pack=4):
    """How a product is cut: for all cores (m, n, k_a, k_b), one core (single_core_…), one base block (base_…).

    `step_m` × `step_k_a` base blocks of A (`step_n` × `step_k_b` of B) come to L1 in one copy, `depth_a1`
    (`depth_b1`) base blocks have room there. `db_…` is how many base blocks L0A, L0B and L0C hold. Sizes in elements.
    """

    vars().update(_members(*_SIZES, *_BATCH, *_STEPS))


class MatmulApiStaticTiling(Struct, _Members, pack=4):
    """A TCubeTiling whose known members stand in the program; −1 where one is not known."""

    vars().update(_members(*_SIZES, *_STEPS, "mx_type_para", default=-1))


class SoftmaxTiling(Struct, _Members, pack=4):
    """How softmax goes through its rows: `split_m` rows a round, `range_m` rounds, `tail_m` rows at the end."""

    vars().update(_members(*_SOFTMAX))


class RmsNormTiling(Struct, _Members, pack=4):
    """How rmsnorm goes through its rows of `h_length` elements: `main_bs_length` rows a round, then the rest."""

    vars().update(_members("b_length", "s_length", "h_length", "original_h_length"))
    reciprocal_of_h_length: Any = Field(float32, 0.0)
    vars().update(
        _members(
            "main_bsh_length",
            "main_bs_length",
            "main_bs_length_align",
            "loop_round",
            "input_tail_pos",
            "tail_bsh_length",
            "tail_bs_length",
        )
    )
