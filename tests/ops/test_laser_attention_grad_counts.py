"""Instructions and bytes of laser_attention_grad by pipe: equal to the closed forms and to worked figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import Run
from ops import Context, create_operation
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad.plan import Plan
from ops.laser_attention_grad.problem import BFLOAT16
from ops.laser_attention_grad.sizes import BLOCK, Sizes
from ops.tensor import DTYPES
from tests.ops.laser_counts import AIC, AIV, cube_counts, post_counts, tally, vector_counts


def run_for_time(sizes: Sizes, *, mask: bool, window: int, cores: int) -> Run:
    """Run without numbers and checks; `window` in blocks."""
    pre_tokens = window * BLOCK or sizes.seq
    operation = create_operation(
        "LaserAttentionGradOperation",
        {"headNum": sizes.heads, "inputLayout": sizes.layout, "preTokens": pre_tokens},
    )
    descs = data.descs(sizes, has_mask=mask)
    inputs = [np.zeros(desc.shape, DTYPES[desc.dtype]) for desc in descs]
    outputs = [np.zeros(desc.shape, BFLOAT16) for desc in operation.infer_shape(inputs)]
    context = Context(numerics="off", checks="off", cores=cores)
    operation.setup(inputs, outputs, context)
    return operation.execute(inputs, outputs, context)


def counted(phase: dict[str, Any], kind: str, names: tuple[str, ...]) -> dict[str, int]:
    """Return a phase's figures of one kind of core under the names of the closed forms."""
    found = {}
    for name in names:
        pipe, _, what = name.partition(" ")
        table = {"": "instructions", "bytes": "bytes"}.get(what, "work")
        found[name] = phase[table][kind][pipe]
    return found


def check(run: Run, plan: Plan) -> None:
    """The main phase and, with BNSD, post-processing do exactly what the closed forms say."""
    total = tally(plan)
    phases = run.summary["phases"]
    main = phases["main"]
    assert counted(main, "aic", AIC) == cube_counts(plan, total)
    both = {name: 2 * value for name, value in vector_counts(total).items()}
    assert counted(main, "aiv", AIV) == both
    assert main["instructions"]["aic"]["MTE3"] == 0
    sizes = plan.sizes
    if sizes.layout == "BNSD":
        elements = [sizes.query_elements, sizes.key_elements, sizes.value_elements]
        wanted = post_counts(elements, 2 * plan.cores)
        assert counted(phases["post"], "aiv", tuple(wanted)) == wanted
    assert sum(phases["post"]["instructions"]["aic"].values()) == 0


SHAPES = {
    "whole": (Sizes(1, 1, 1, 256, 256, 128), False, 0, 24),
    "whole, keys twice": (Sizes(2, 2, 1, 256, 512, 128), False, 0, 3),
    "triangle": (Sizes(1, 1, 1, 256, 256, 128), True, 0, 24),
    "odd triangle": (Sizes(1, 3, 1, 768, 768, 128), True, 0, 2),
    "192, triangle": (Sizes(1, 1, 1, 256, 256, 192), True, 0, 24),
    "192, whole": (Sizes(1, 2, 2, 512, 256, 192), False, 0, 1),
    "SBH": (Sizes(2, 1, 1, 512, 512, 192, "SBH"), True, 0, 5),
    "window": (Sizes(1, 1, 1, 512, 512, 128), True, 2, 24),
    "wide window": (Sizes(1, 2, 2, 1024, 1024, 128), True, 6, 2),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_counts_are_the_closed_forms(shape: tuple[Sizes, bool, int, int]) -> None:
    sizes, mask, window, cores = shape
    run = run_for_time(sizes, mask=mask, window=window, cores=cores)
    check(run, Plan(sizes, mask, window, cores))


WORKED = {
    # seq, heads, mask, head dim, window: rounds, slots, n, G, core-rounds, then MTE2, its bytes, MTE1, M, FIX, its
    # bytes of all cube cores, and X, V, V repeats of one vector core of each pair; 24 cores, one sample.
    (256, 1, False, 128, 0): (1, 4, 4, 1, 1, 24, 851968, 212, 20, 14, 917504, 2, 112, 4932),
    (256, 1, True, 128, 0): (1, 4, 3, 1, 1, 21, 753664, 172, 16, 12, 786432, 2, 106, 4804),
    (4096, 4, True, 128, 0): (6, 2176, 2112, 192, 136, 10752, 364904448, 101504, 10624, 6784, 444596224, 384, 46464,
                              2200320),
    (4096, 4, False, 128, 0): (11, 4096, 4096, 256, 256, 19968, 671088640, 192512, 20480, 12800, 838860800, 512,
                               83968, 4015104),
    (256, 1, True, 192, 0): (1, 4, 3, 1, 1, 29, 1032192, 296, 25, 16, 917504, 2, 106, 4804),
    (2048, 4, False, 192, 0): (3, 1024, 1024, 64, 64, 7168, 239075328, 90624, 8192, 3840, 230686720, 128, 20992,
                               1003776),
    (512, 1, True, 128, 2): (1, 9, 9, 4, 1, 61, 1998848, 434, 45, 40, 2621440, 4, 286, 13576),
    (8192, 10, True, 128, 2): (5, 1890, 1890, 718, 119, 12322, 403767296, 87236, 9450, 8278, 542507008, 718, 58420,
                               2819932),
}  # fmt: skip
LARGE = 2048


@pytest.mark.parametrize("shape", WORKED, ids=str)
def test_plan_gives_the_worked_figures(shape: tuple[int, int, bool, int, int]) -> None:
    seq, heads, mask, head_dim, window = shape
    plan = Plan(Sizes(1, heads, heads, seq, seq, head_dim), mask, window, 24)
    total = tally(plan)
    cube, vector = cube_counts(plan, total), vector_counts(total)
    del cube["M cycles"]
    found = (
        plan.rounds, plan.slots, total.n, total.G, total.active, *cube.values(), total.X, vector["V"],
        vector["V repeats"],
    )  # fmt: skip
    assert found == WORKED[shape]


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=str(shape), marks=[pytest.mark.slow] if shape[0] >= LARGE else [])
        for shape in WORKED
    ],
)
def test_run_gives_the_worked_figures(shape: tuple[int, int, bool, int, int]) -> None:
    seq, heads, mask, head_dim, window = shape
    sizes = Sizes(1, heads, heads, seq, seq, head_dim)
    check(run_for_time(sizes, mask=mask, window=window, cores=24), Plan(sizes, mask, window, 24))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Return any plan of small size: whole, triangular or with a window."""
    units = draw(st.integers(1, 12))
    kind = draw(st.sampled_from(["whole", "triangle", "window"]))
    head_dim = draw(st.sampled_from([128, 192])) if kind != "window" else 128
    kv_units = draw(st.integers(1, 12)) if kind == "whole" else units
    window = 0
    if kind == "window" and units > 1:
        window = 2 * draw(st.integers(1, units - 1))
    group = draw(st.integers(1, 3))
    kv_heads = draw(st.integers(1, 3))
    sizes = Sizes(
        draw(st.integers(1, 3)), group * kv_heads, kv_heads, units * 256, kv_units * 256, head_dim
    )
    return Plan(sizes, kind != "whole", window, draw(st.sampled_from([1, 2, 3, 5, 20, 24])))


@settings(max_examples=150, deadline=None)
@given(plans())
def test_every_block_has_one_slot(plan: Plan) -> None:
    """The cover is exact, cube and vector agree on slots in every round, and nothing leaves its bounds."""
    sizes = plan.sizes
    seen: dict[tuple[int, int, int, int], int] = {}
    for number in range(plan.rounds):
        for core in range(plan.cores):
            by_cube, by_vector = {}, {}
            used: list[int] = []
            for segment in plan.segments(core, number):
                for j in range(segment.rows):
                    for i in range(segment.columns):
                        slot = segment.slot + j * segment.columns + i
                        used.append(slot)
                        if not segment.skips(j, i):
                            place = (
                                segment.batch,
                                segment.head,
                                segment.row + j,
                                segment.column + i,
                            )
                            by_cube[slot] = place
                            seen[place] = seen.get(place, 0) + 1
            sections = plan.sections(core, number)
            for section in sections:
                for k in range(section.length):
                    by_vector[section.slot + k] = (
                        section.batch, section.head, section.row, section.column + k,
                    )  # fmt: skip
                last = section.column + section.length - 1
                assert section.tail == (plan.triangular and last == section.row)
            assert by_cube == by_vector
            assert used == list(range(len(used)))
            assert len(used) <= 16
            assert len(sections) <= 16
            assert bool(used) == plan.is_active(core, number)
    rows, columns = sizes.seq // BLOCK, sizes.kv_seq // BLOCK
    wanted = {
        (batch, head, row, column)
        for batch in range(sizes.batch)
        for head in range(sizes.heads)
        for row in range(rows)
        for column in range(columns)
        if not plan.triangular
        or (column <= row and (not plan.window or row - column <= plan.window))
    }
    assert seen == dict.fromkeys(wanted, 1)


@settings(max_examples=60, deadline=None)
@given(plans())
def test_no_more_rounds_than_slots_need(plan: Plan) -> None:
    assert (plan.rounds - 1) * 16 * plan.cores < plan.slots <= plan.rounds * 16 * plan.cores
    skipped = plan.slots - tally(plan).n
    if plan.triangular and not plan.window:
        pairs = plan.sizes.seq // 256 * plan.sizes.batch * plan.sizes.heads
        assert skipped == pairs
    else:
        assert skipped == 0
