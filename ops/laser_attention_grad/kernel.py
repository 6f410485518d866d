"""The device kernel of `laser_attention_grad`: a cube core and two vector cores a block.

In pyasc's spelling, with classes, phases and bfloat16, which are additions to it. It knows no chip and no host: all it
is given is addresses, and the tiling record says the rest.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

import ascend_sim as sim
from ascend_sim import asc
from ops.laser_attention_grad import post, transpose_in
from ops.laser_attention_grad.arguments import ONE_CORE, V2C, Arguments
from ops.laser_attention_grad.cube_band import CubeBand
from ops.laser_attention_grad.cube_band_192 import CubeBand192
from ops.laser_attention_grad.cube_window import CubeWindow
from ops.laser_attention_grad.param import SBH
from ops.laser_attention_grad.sizes import BLOCK
from ops.laser_attention_grad.vector_core import MASK_AT_BAND, MASK_AT_WINDOW, Vector


@asc.jit(auto_sync=False, kernel_type="MIX_AIC_1_2")
def laser_attention_grad(
    query: asc.GlobalAddress,
    key: asc.GlobalAddress,
    value: asc.GlobalAddress,
    attention_out_grad: asc.GlobalAddress,
    pse_shift: asc.GlobalAddress,
    drop_mask: asc.GlobalAddress,
    atten_mask: asc.GlobalAddress,
    softmax_max: asc.GlobalAddress,
    softmax_sum: asc.GlobalAddress,
    attention_in: asc.GlobalAddress,
    query_grad: asc.GlobalAddress,
    key_grad: asc.GlobalAddress,
    value_grad: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.GlobalAddress,
) -> None:
    """Compute dQ, dK and dV on this core's share of the score matrix's blocks.

    `tiling` is the record of 512 bytes, `workspace` what the host has set aside, its accumulators zero. `pse_shift` and
    `drop_mask` are not used.
    """
    asc.init_soc_state()
    arguments = Arguments(
        query, key, value, attention_out_grad, atten_mask, softmax_max, softmax_sum, attention_in, workspace, tiling
    )  # fmt: skip
    turned = arguments.sizes.layout == SBH
    if turned:
        sim.phase("pre")
        if asc.ascend_is_aiv():
            transpose_in.transpose_all(arguments)
        else:
            asc.cross_core_wait_flag(V2C, ONE_CORE)
    sim.phase("main")
    run_rounds(arguments)
    asc.sync_all(is_aiv_only=False)
    sim.phase("post")
    if asc.ascend_is_aiv():
        outputs = []
        for address in (query_grad, key_grad, value_grad):
            output = asc.GlobalTensor()
            output.set_global_buffer(address)
            outputs.append(output)
        (post.store_turned if turned else post.store_flat)(arguments, outputs)


def run_rounds(arguments: Arguments) -> None:
    """Run this core's part of all rounds, by path and kind of core."""
    window = bool(arguments.plan.window)
    if asc.ascend_is_aiv():
        Vector(arguments, MASK_AT_WINDOW if window else MASK_AT_BAND, extra_wait=window).run()
    elif window:
        CubeWindow(arguments).run()
    elif arguments.sizes.head_dim == BLOCK:
        CubeBand(arguments).run()
    else:
        CubeBand192(arguments).run()
