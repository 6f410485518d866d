"""Every vector instruction, type and calling form against loops over bytes and sets of bytes."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isa_kit import function, stream, tensor_at
from loops import UB_BYTES, Place, broken_rules, counted, lanes_per_repeat, run, side_by_side
from meanings import MEANINGS, Meaning, lane_bits

from isa.faults import IsaFault
from isa.instruction import REGISTRY
from isa.move import data_copy  # noqa: F401  registers the moves
from isa.params import BinaryRepeatParams, CopyRepeatParams, UnaryRepeatParams
from isa.stream import EagerStream
from isa.sync import set_mask_count, set_mask_norm, set_vector_mask
from isa.types import DTYPES, DType, Space

ALL_ONES = (1 << 64) - 1
MOVES = {"data_copy", "data_copy_pad", "cast"}
PAIRS = [
    pytest.param(name, source, target, id=f"{name}-{source}-{target}")
    for name, meaning in MEANINGS.items()
    for source, target in meaning.types
]


def test_every_instruction_is_tested() -> None:
    here = {
        "isa.vector.arithmetic",
        "isa.vector.fill",
        "isa.vector.shift",
        "isa.move",
        "isa.copy_pad",
    }
    mine = {name for name, record in REGISTRY.items() if record.meaning.__module__ in here}
    assert mine == set(MEANINGS) | MOVES


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_the_registry_names_the_types(name: str) -> None:
    record = REGISTRY[name]
    equal = {source for source, target in MEANINGS[name].types if source is target}
    assert set(record.dtypes) == equal
    assert set(record.widening) == {p for p in MEANINGS[name].types if p[0] is not p[1]}
    assert set(record.folds) == set(MEANINGS[name].accumulates)


class Case:
    """One call: what it is given, and what the loops make of it."""

    def __init__(self, meaning: Meaning, name: str, source: DType, target: DType) -> None:
        self.name = name
        self.meaning = meaning
        self.source = source
        self.target = target
        self.places: list[Place] = []  # dst, sources as given
        self.scalar: Any = None
        self.form = "count"
        self.number = 0
        self.mask: Any = None
        self.repeat = 1
        self.set_mask = True
        self.register: tuple[int, int] = (ALL_ONES, ALL_ONES)

    @property
    def lanes(self) -> int:
        return lanes_per_repeat(self.places)

    def operands(self) -> list[Place]:
        """Return dst and what is read, dst again where the instruction reads it."""
        places = self.places
        if self.form in ("count", "bare count"):
            places = [side_by_side(place, self.lanes) for place in places]
        return [*places, places[0]] if self.meaning.reads_dst else places

    def repeats(self) -> list[list[int]]:
        """Return the active lanes of each repeat."""
        if self.form in ("count", "counter"):
            return counted(self.number, self.lanes)
        if isinstance(self.mask, int):
            active = list(range(min(self.mask, self.lanes)))
        else:
            bits = sum(word << (64 * i) for i, word in enumerate(self.mask))
            active = [lane for lane in range(self.lanes) if bits >> lane & 1]
        return [active] * self.repeat if active else []

    def lane(self, *patterns: int) -> int:
        """Compute one lane on bit patterns."""
        values = list(patterns)
        if self.meaning.kind == "fill":
            return exact.encode(self.target, exact.decode(self.source, self.scalar_bits()))
        if self.meaning.kind == "scalar":
            values.insert(1, self.scalar_bits())
        if self.meaning.kind == "shift":
            value = exact.decode(self.source, patterns[0])
            return exact.encode(self.target, self.meaning.lane(value, self.scalar))
        return lane_bits(self.meaning, self.source, self.target, *values)

    def scalar_bits(self) -> int:
        return exact.encode(self.source, self.scalar)

    def call(self) -> None:
        """Issue the call on the current stream, registers set first where the form asks for it."""
        tensors = [tensor_at(place) for place in self.places]
        arguments: list[Any] = [*tensors]
        if self.scalar is not None:
            arguments.append(self.scalar)
        if self.form == "count":
            function(self.name)(*arguments, self.number)
            return
        if self.form == "bare count":
            function(self.name)(*arguments, self.number, is_set_mask=False)
            return
        if self.form == "counter":
            set_mask_count()
        mask = self.number if self.form == "counter" else self.mask
        if not self.set_mask:
            self._set_register(mask)
            mask = 0
        arguments += [mask, self.repeat]
        arguments += self._strides()
        function(self.name)(*arguments, is_set_mask=self.set_mask)

    def _set_register(self, mask: Any) -> None:
        if self.form == "counter":
            set_vector_mask(mask)
        elif isinstance(mask, int):
            bits = (1 << mask) - 1
            set_vector_mask(bits >> 64, bits & ALL_ONES)
        else:
            set_vector_mask(mask[1] if len(mask) > 1 else 0, mask[0])

    def _strides(self) -> list[Any]:
        dst, *sources = self.places
        kind = self.meaning.kind
        if kind == "fill":
            return [dst.block_stride, dst.repeat_stride]
        if kind == "copy":
            (src,) = sources
            return [
                CopyRepeatParams(
                    dst.block_stride, src.block_stride, dst.repeat_stride, src.repeat_stride
                )
            ]
        if kind == "binary":
            a, b = sources
            return [
                BinaryRepeatParams(
                    dst.block_stride,
                    a.block_stride,
                    b.block_stride,
                    dst.repeat_stride,
                    a.repeat_stride,
                    b.repeat_stride,
                )
            ]
        (src,) = sources
        return [
            UnaryRepeatParams(
                dst.block_stride, src.block_stride, dst.repeat_stride, src.repeat_stride
            )
        ]

    def __repr__(self) -> str:
        return (
            f"{self.name} {self.form} number={self.number} mask={self.mask} repeat={self.repeat} "
            f"set_mask={self.set_mask} scalar={self.scalar} {self.places}"
        )


SOURCES = {"binary": 2, "fill": 0}
SCALARS = {"scalar", "shift", "fill"}


@st.composite
def cases(draw: st.DrawFn, name: str, source: DType, target: DType) -> Case:
    meaning = MEANINGS[name]
    case = Case(meaning, name, source, target)
    forms = ["count", "mask", "bits", "counter", "bare count"]
    if meaning.kind == "copy":
        forms = ["mask", "bits"]
    case.form = draw(st.sampled_from(forms))
    case.set_mask = draw(st.booleans()) if case.form not in ("count", "bare count") else True
    case.repeat = draw(st.integers(0, 4))
    count = SOURCES.get(meaning.kind, 1)
    dtypes = [target, *[source] * count]
    addresses = draw(
        st.lists(
            st.integers(0, 120).map(lambda block: 32 * block),
            min_size=1 + count,
            max_size=1 + count,
        )
    )
    if count and draw(st.integers(0, 3)) == 0:  # in place
        addresses[-1] = addresses[0]
    same = draw(st.booleans())
    for index, (dtype, addr) in enumerate(zip(dtypes, addresses, strict=True)):
        block_stride = draw(st.sampled_from([1, 1, 1, 2, 0, 3]))
        repeat_stride = draw(st.sampled_from([8, 8, 4, 1, 0, 9, 16, 2]))
        if same and index:
            block_stride = case.places[0].block_stride
            repeat_stride = case.places[0].repeat_stride
        whole = draw(st.integers(0, 9)) > 0
        length = UB_BYTES - addr if whole else draw(st.integers(0, 40)) * dtype.size
        case.places.append(Place(dtype, addr, length, block_stride, repeat_stride))
    if meaning.accumulates and draw(st.integers(0, 5)) == 0:  # the accumulating form
        dst, first, _ = case.places
        dst = Place(dst.dtype, dst.addr, dst.length, 1, 0)
        case.places = [dst, first, dst]
    lanes = case.lanes
    case.number = draw(st.one_of(st.integers(0, 3 * lanes), st.just(lanes), st.just(2 * lanes)))
    if case.form == "mask":
        case.mask = (
            draw(st.integers(0, lanes + 2)) if case.set_mask else draw(st.integers(0, lanes))
        )
    elif case.form == "bits":
        words = 2 if lanes == 128 else 1
        case.mask = draw(st.lists(st.integers(0, ALL_ONES), min_size=words, max_size=words))
    elif case.form == "bare count":
        case.mask = [ALL_ONES, ALL_ONES]
        case.repeat = 1
    if meaning.kind in SCALARS:
        case.scalar = draw(_scalars(meaning, source))
    return case


def _scalars(meaning: Meaning, dtype: DType) -> st.SearchStrategy[Any]:
    if meaning.kind == "shift":
        return st.integers(0, 8 * dtype.size)
    if dtype.is_float():
        return st.one_of(
            st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3]),
            st.floats(-60000, 60000, width=32),
        )
    limits = np.iinfo(dtype.numpy)
    return st.integers(int(limits.min), int(limits.max))


def check(case: Case, seed: int) -> None:
    """Run a case on the eager stream and by the loops, and compare all of UB and the mask register."""
    with stream(seed) as eager:
        before = bytearray(eager.memories[Space.UB].tobytes())
        accumulates = case.target in case.meaning.accumulates
        operands, repeats = case.operands(), case.repeats()
        own = len(operands) - 1 if case.meaning.reads_dst else None
        codes = broken_rules(operands, repeats, accumulates=accumulates, own=own)
        if not repeats:
            codes = set()
        try:
            case.call()
        except IsaFault as fault:
            if fault.code == "not-simulated":
                assert case.form == "counter"
                return
            assert fault.code in codes, f"{case}: {fault}"
            assert bytes(before) == eager.memories[Space.UB].tobytes()
            return
        assert not codes, f"{case} is against {codes}"
        run(before, operands, repeats, case.lane)
        compare(case, bytes(before), eager.memories[Space.UB].tobytes())
        _check_registers(case, eager)


def compare(case: Case, expected: bytes, got: bytes) -> None:
    """Compare memories: equal bytes, but for NaN, which are alike, and the tolerance in last places."""
    if expected == got:
        return
    size = case.target.size
    assert case.target.is_float(), f"{case}: {_first_difference(expected, got)}"
    base = case.places[0].addr % size
    for at in range(base, len(expected) - size + 1, size):
        if expected[at : at + size] == got[at : at + size]:
            continue
        want = int.from_bytes(expected[at : at + size], "little")
        have = int.from_bytes(got[at : at + size], "little")
        values = exact.decode(case.target, want), exact.decode(case.target, have)
        if exact.is_nan(values[0]) and exact.is_nan(values[1]):
            continue
        distance = abs(exact.ordered(case.target, want) - exact.ordered(case.target, have))
        assert distance <= case.meaning.tolerance, f"{case}: byte {at} {values}"


def _first_difference(expected: bytes, got: bytes) -> str:
    at = next(i for i, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b)
    return f"byte {at} is {got[at]}, expected {expected[at]}"


def _check_registers(case: Case, eager: EagerStream) -> None:
    registers = eager.registers
    got = (registers.mask_low, registers.mask_high, registers.counter_mode)
    if case.form in ("count", "bare count"):
        assert got == (ALL_ONES, ALL_ONES, False)
    elif case.form == "counter":
        assert got == (case.number, 0, True)
    elif isinstance(case.mask, int):
        bits = (1 << min(case.mask, case.lanes)) - 1
        assert got == (bits & ALL_ONES, bits >> 64, False)
    else:
        high = case.mask[1] if len(case.mask) > 1 else 0
        assert got == (case.mask[0], high, False)


common = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@pytest.mark.parametrize(("name", "source", "target"), PAIRS)
def test_does_what_the_loops_do(name: str, source: DType, target: DType) -> None:
    @settings(common, max_examples=25)
    @given(cases(name, source, target), st.integers(0, 1000))
    def property_of(case: Case, seed: int) -> None:
        check(case, seed)

    property_of()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "source", "target"), PAIRS)
def test_does_what_the_loops_do_at_length(name: str, source: DType, target: DType) -> None:
    @settings(common, max_examples=150)
    @given(cases(name, source, target), st.integers(0, 10**6))
    def property_of(case: Case, seed: int) -> None:
        check(case, seed)

    property_of()


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_other_types_are_refused(name: str) -> None:
    meaning = MEANINGS[name]
    taken = {source for source, _ in meaning.types}
    for dtype in DTYPES:
        if dtype in taken:
            continue
        case = Case(meaning, name, dtype, dtype)
        case.places = [Place(dtype, 0, 1024) for _ in range(1 + SOURCES.get(meaning.kind, 1))]
        case.scalar = 1 if meaning.kind in SCALARS else None
        case.form, case.mask = ("mask", 1) if meaning.kind == "copy" else ("count", None)
        case.number = 1
        with (
            stream(),
            pytest.raises(IsaFault, match=rf"^{name}: dst .* is {dtype}, the 910B takes"),
        ):
            case.call()


def test_normal_mode_after_counter_mode() -> None:
    # A mask call between set_mask_count and set_mask_norm counts; afterwards it selects lanes again.
    case = Case(MEANINGS["abs"], "abs", DTYPES[0], DTYPES[0])
    case.places = [Place(DTYPES[0], 4096, 4096), Place(DTYPES[0], 0, 4096)]
    case.form, case.number = "counter", 200
    with stream() as eager:
        case.call()
        assert eager.issued[-1].work == 2
        set_mask_norm()
        case.form, case.mask = "mask", 100
        case.call()
        assert eager.issued[-1].work == 1


@pytest.mark.parametrize(
    ("block_stride", "repeat_stride"), [(4, 2), (4, 3), (3, 1), (1, 1), (1, 3)]
)
@pytest.mark.parametrize("mask", [128, 100, [0x5555_5555_5555_5555, 7]], ids=str)
def test_where_repeats_write_the_same_bytes_the_last_one_stays(
    block_stride: int, repeat_stride: int, mask: Any
) -> None:
    float16 = DTYPES[0]
    case = Case(MEANINGS["copy"], "copy", float16, float16)
    case.places = [
        Place(float16, 0, 4096, block_stride, repeat_stride),
        Place(float16, 4096, 4096),
    ]
    case.form, case.mask, case.repeat = "mask", mask, 5
    check(case, 1)
    case.meaning, case.name = MEANINGS["abs"], "abs"
    check(case, 2)


@pytest.mark.parametrize("name", ["add", "sub", "max", "add_relu"])
@pytest.mark.parametrize("number", [256, 300, 129])
def test_accumulation_in_counter_mode_ends_with_a_part_of_a_repeat(name: str, number: int) -> None:
    float16 = DTYPES[0]
    case = Case(MEANINGS[name], name, float16, float16)
    total = Place(float16, 4096, 512, 1, 0)
    case.places = [total, Place(float16, 0, 4096), total]
    case.form, case.number = "counter", number
    check(case, 3)


def test_counter_mode_with_strides_at_the_end_of_ub() -> None:
    # What the simulator cannot do: a strided pattern whose last repeat, were it whole, would leave UB.
    float16 = DTYPES[0]
    case = Case(MEANINGS["abs"], "abs", float16, float16)
    case.form, case.number = "counter", 130
    case.places = [Place(float16, UB_BYTES - 512, 512, 1, 10), Place(float16, 0, 1024)]
    with (
        stream(),
        pytest.raises(IsaFault, match=r"^abs: counter mode .* move the tensor down$") as caught,
    ):
        case.call()
    assert caught.value.code == "not-simulated"
    case.places = [Place(float16, UB_BYTES - 512, 512), Place(float16, 0, 1024)]
    check(case, 4)  # side by side it is no matter
    case.places = [Place(float16, UB_BYTES - 608, 608, 1, 10), Place(float16, 0, 1024)]
    check(case, 5)


@pytest.mark.parametrize("set_mask", [True, False])
def test_in_counter_mode_copy_counts_the_elements_of_one_repeat(set_mask: bool) -> None:
    case = Case(MEANINGS["copy"], "copy", DTYPES[0], DTYPES[0])
    case.places = [Place(DTYPES[0], 4096, 4096), Place(DTYPES[0], 0, 4096)]
    case.form, case.mask, case.repeat, case.set_mask = "mask", 100, 3, set_mask
    with stream(6) as eager:
        before = bytearray(eager.memories[Space.UB].tobytes())
        set_mask_count()
        if not set_mask:
            set_vector_mask(100)
        strides = case._strides()
        tensors = [tensor_at(place) for place in case.places]
        function("copy")(*tensors, 100 if set_mask else 0, 3, *strides, set_mask)
        run(before, case.places, case.repeats(), case.lane)
        assert bytes(before) == eager.memories[Space.UB].tobytes()
        registers = eager.registers
        assert (registers.mask_low, registers.mask_high, registers.counter_mode) == (100, 0, True)
