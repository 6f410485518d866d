"""What is said of results that depart: from the same launch in float32, and from a reference of the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError, Finding
from ascend_sim.lineage import Lineage
from ascend_sim.messages import place, short
from ascend_sim.patterns import pattern_of
from ascend_sim.shadow import UNITS, Departure, Shadow
from isa.access import Access
from isa.types import Space

if TYPE_CHECKING:
    from ascend_sim.run import Run
    from ascend_sim.trace import Item
    from isa.tensor import GlobalAddress

Array = np.ndarray[Any, Any]
_SHOWN = 6
_BITS = {"float16": 11, "bfloat16": 8}
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38}
_SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}


def losses(run: Run, shadow: Shadow, lineage: Lineage) -> Iterator[Finding]:
    """Yield the places whose results depart from float32 by more than rounding explains, and that reach GM.

    One finding a line, in the order in which the results came.
    """
    reached: dict[int, list[str]] = {}
    for name, address in run.addresses.items():
        found = shadow.in_the_end(_whole(name, address), address.buffer.data)
        if found is None:
            continue
        for number in np.unique(found[1]).tolist():
            if number:
                hit = (found[1] == number).reshape(address.shape)
                reached.setdefault(number, []).append(
                    f"{name}: {int(hit.sum())} of {hit.size} elements, {pattern_of(hit)}"
                )
    told = set()
    for departure in shadow.departures:
        site = departure.item.site
        if departure.number in reached and site not in told:
            told.add(site)
            before = [lineage.item(number) for number in departure.made_of]
            yield _loss(run, departure, before, reached[departure.number])


def _whole(name: str, address: GlobalAddress) -> Access:
    """Return all of an argument's elements as one access."""
    tensor: Any = SimpleNamespace(space=Space.GM, buffer=address.buffer, name=name)
    size = address.dtype.size
    return Access(tensor, address.offset, (address.length // size,), (size,), address.dtype)


def _loss(run: Run, departure: Departure, before: list[Item], reached: list[str]) -> Finding:
    item = departure.item
    target = item.call.writes[0]
    code, why = _why(departure)
    off = abs(departure.made - departure.wanted)
    scale = departure.largest or 1.0
    message = (
        f"{item.name} makes element {departure.element} of {target.name} {departure.made:.8g}, which in float32 would "
        f"be {departure.wanted:.8g}: {off / scale:.2g} of the largest number in the result; {departure.count} of "
        f"{departure.size} elements are more than {UNITS} roundings off. {why}"
    )
    sites = run.log.sites
    makers = dict.fromkeys(f"{one.name} {_line(sites[one.site])}" for one in before)
    more = [f"what it reads was made by {', '.join(makers)}"] if makers else []
    return _finding(run, item, code, message, [*more, f"it reaches {'; '.join(reached)}"])


def _why(departure: Departure) -> tuple[str, str]:
    """Return the code of a loss, and what it comes from and what helps."""
    item = departure.item
    target = item.call.writes[0].dtype.name
    casts = item.name.startswith("cast") or item.pipe.name == "FIX"
    if not np.isfinite(departure.made):
        code = "cast-overflow" if casts else "precision-loss"
        return code, (
            f"{target} ends at {_LARGEST.get(target, 3.4028235e38):.6g}. Scale it down first, or keep a wider type"
        )
    if casts and target in _SMALLEST and departure.largest < 2**12 * _SMALLEST[target]:
        return "cast-underflow", (
            f"Below {_SMALLEST[target] * 2**10:.2g} {target} has fewer digits the smaller a number is, and none below "
            f"{_SMALLEST[target]:.2g}. Scale it up first, or keep it in a wider type"
        )
    if departure.largest * UNITS < departure.scale:
        return "precision-loss", (
            f"Numbers of up to {departure.scale:.4g} all but cancel out, and what rounding them to 16 bits took is "
            f"large beside what is left. Keep them in float32 up to here"
        )
    reads = item.call.reads
    in_place = any(one.low == item.call.writes[0].low for one in reads)
    if (
        in_place
        and item.name.startswith(("add", "axpy", "mul_add", "fused_mul"))
        and target in _BITS
    ):
        return "half-accumulation", (
            f"It adds in place in {target}, {_BITS[target]} bits, and each sum is rounded. Accumulate in float32, or "
            f"add partial sums"
        )
    return "precision-loss", (
        "Roundings to 16 bits before it have grown to that. Keep what it reads in float32"
    )


def _finding(run: Run, item: Any, code: str, message: str, more: list[str]) -> Finding:
    site = run.log.sites[item.site]
    lines = [message, f"{item.name} at {place(site)}", *more]
    return Finding(
        "NUMERIC", code, "\n  ".join(lines), site.file, site.line, run.log.cores[item.core].name, item.pipe.name,
        str(item.call.writes[0].name), struck=True,
    )  # fmt: skip


def differences(
    run: Run, shadow: Shadow, lineage: Lineage, reference: Mapping[str, Any], rtol: float
) -> Iterator[Finding]:
    """Yield a finding for each output that is further off its reference than `rtol` and roundings explain.

    It leads to the instruction that only wrong elements come through, if there is one, else to the store of the first
    wrong element. Raises `ConfigError` for a reference that is not one of an argument.
    """
    for name, wanted in reference.items():
        address = run.addresses.get(name)
        if address is None:
            known = ", ".join(run.addresses)
            raise ConfigError(
                f"the reference names {name!r}, which is no argument of {run.op}{nearest(name, run.addresses)} "
                f"(it has: {known})"
            )
        whole = _whole(name, address)
        made = np.array(whole.view(address.buffer.data)).reshape(address.shape)
        right = np.asarray(wanted)
        if right.shape != made.shape:
            raise ConfigError(
                f"the reference of {name} has shape {list(right.shape)}, the argument {list(made.shape)}"
            )
        limit = max(rtol, UNITS * 2.0 ** -_BITS.get(address.dtype.name, 24))
        wrong = _wrong(made, right, limit)
        if not wrong.any():
            continue
        found = _difference(run, lineage, whole, made, right, wrong)
        found.message += _told_by_shadow(shadow, whole, right, wrong, limit)
        yield found


def _wrong(made: Array, right: Array, limit: float) -> Array:
    """Return which elements are further from the reference than a part `limit` of its largest number."""
    left, wanted = made.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(wanted)
    with np.errstate(all="ignore"):
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        far = np.abs(left - wanted) > (limit * scale if made.dtype.kind not in "iub" else 0.0)
    same = (left == wanted) | (np.isnan(left) & np.isnan(wanted))
    found: Array = np.where(finite, far, ~same)
    return found


def _difference(
    run: Run, lineage: Lineage, whole: Access, made: Array, right: Array, wrong: Array
) -> Finding:
    assert whole.buffer is not None
    data = whole.buffer.data
    first = int(np.flatnonzero(wrong)[0])
    index = [int(one) for one in np.unravel_index(first, made.shape)]
    writers = lineage.writers_of(whole, data).reshape(-1)
    count = int(wrong.sum())
    message = (
        f"{whole.name}: {count} of {made.size} elements are not what the reference says, {pattern_of(wrong)}. Element "
        f"{index} is {_number(made.reshape(-1)[first])}, the reference {_number(right.reshape(-1)[first])}"
    )
    store = int(writers[first])
    if not store:
        return Finding(
            "NUMERIC", "output-differs", f"{message}. No instruction has written it", tensor=whole.name, struck=True
        )  # fmt: skip
    flat = wrong.reshape(-1)
    sites = run.log.sites
    bad = {lineage.item(one).site for one in lineage.ancestors(np.unique(writers[flat]).tolist())}
    good = {lineage.item(one).site for one in lineage.ancestors(np.unique(writers[~flat]).tolist())}
    chain = lineage.descent(store)
    alone = bad - good if good else set()
    suspects = [item for item in reversed(chain) if item.site in alone]
    more = []
    if suspects:
        lines = dict.fromkeys(f"{one.name} at {_line(sites[one.site])}" for one in suspects)
        more.append(f"only wrong elements come through {', '.join(list(lines)[:_SHOWN])}")
    steps = dict.fromkeys(f"{one.name} {_line(sites[one.site])}" for one in chain)
    more.append(f"it came about by {' <- '.join(list(steps)[:_SHOWN])}")
    return _finding(run, suspects[0] if suspects else chain[0], "output-differs", message, more)


def _told_by_shadow(shadow: Shadow, whole: Access, right: Array, wrong: Array, limit: float) -> str:
    """Say whether float32 all the way would have been right."""
    assert whole.buffer is not None
    found = shadow.in_the_end(whole, whole.buffer.data)
    if found is None or np.isnan(found[0][wrong.reshape(-1)]).any():
        return ""
    if (_wrong(found[0].reshape(wrong.shape), right, limit) & wrong).any():
        return "\n  in float32 throughout it would be wrong too: the calculation is another one"
    return "\n  in float32 throughout it would be right: it is precision that is missing"


def _line(site: Any) -> str:
    return f"{short(site.file)}:{site.line}"


def _number(value: Any) -> str:
    return f"{float(value):.8g}"
