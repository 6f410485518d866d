"""Edits beside a loop: flags that are raised before it for its first trips, and taken behind it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from ascend_sim.doctor.parts import PARTNER, CallPart, FilePart, Remedy
from ascend_sim.doctor.source import Edit, Key, Source, key_of
from ascend_sim.trace import Kind, Log
from isa.types import HardEvent

Made = tuple[float, Remedy]
Way = tuple[tuple[str, int, str], ...]
"""The frames of a call, the innermost first: file, line, function."""

Flag = tuple[HardEvent, int, Way]
"""An event, its number, and the way to the call."""


class Ahead:
    """Makes up edits for waits that nothing ends and sets that nobody waits for. Costs as in `Remedies`."""

    def __init__(self, log: Log, part_of: Callable[[str], FilePart | None]) -> None:
        self._log = log
        self._part_of = part_of

    def of(self, part: FilePart, call: CallPart) -> Iterator[Made]:
        """Let the loops around a set or a wait, and around the calls that lead there, have a partner beside them."""
        alone = self._alone.get((part.source.file, call.key[0], call.name), [])
        flags = sorted({(event.name, number) for event, number, _ in alone})
        how = "before" if call.name == "wait_flag" else "after"
        for place, key in self._places(alone):
            write = place.set_of if call.name == "wait_flag" else place.wait_of
            texts = [write(event, str(number)) for event, number in flags]
            for far, loop in enumerate(reversed(place.source.loops_around(key))):
                for cost, text in self._texts(place, key, call, texts):
                    yield cost + far / 8, (Edit(place.source.file, loop, how, text),)
        yield from _with_neighbours(part, call)

    def _texts(
        self, part: FilePart, key: Key, call: CallPart, texts: list[str]
    ) -> Iterator[tuple[float, str]]:
        """Yield what may be added beside a loop: the other end's mirror image, one flag, all of them."""
        for twin in part.near(key):
            if twin.name == call.name and twin.event == call.event and twin.key != call.key:
                words = ast.unparse(_whole(part.source, twin.key))
                yield 0.0, words.replace(f"{call.name}(", f"{PARTNER[call.name]}(")
        for text in texts:
            yield 1 / 32, text
        if len(texts) > 1:
            yield 1 / 16, "\n".join(texts)

    @cached_property
    def _alone(self) -> dict[tuple[str, int, str], list[Flag]]:
        """What waits wait for in vain and sets leave set, by file, line and name of the call."""
        flags = [
            item
            for core in self._log.cores
            for item in core.items
            if item.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) and item.event is not None
        ]
        taken = {(item.partner.core, item.partner.index) for item in flags if item.partner}
        found: dict[tuple[str, int, str], dict[Flag, None]] = {}
        for item in flags:
            frames = self._log.sites[item.site].frames
            alone = (
                item.partner is None
                if item.kind is Kind.WAIT_FLAG
                else (item.core, item.index) not in taken
            )
            if alone and frames:
                assert item.event is not None
                here = found.setdefault((*frames[0][:2], item.name), {})
                here[item.event, item.event_id, frames] = None
        return {place: list(flags) for place, flags in found.items()}

    def _places(self, alone: list[Flag]) -> Iterator[tuple[FilePart, Key]]:
        """Yield the statements on the way to a line, from the inside out, each once."""
        for file, line in dict.fromkeys(frame[:2] for _, _, way in alone for frame in way):
            part = self._part_of(file)
            key = part.source.at_line(line) if part is not None else None
            if part is not None and key is not None and part.source.function_of(key) is not None:
                yield part, key


def _whole(source: Source, key: Key) -> ast.stmt:
    """Return the outermost loop or branch that holds nothing but a statement, or the statement itself."""
    statement = source.statements[key]
    owner = source.owner_of(key)
    while isinstance(owner, (ast.For, ast.If)) and len(owner.body) == 1 and not owner.orelse:
        statement, owner = owner, source.owner_of(key_of(owner))
    return statement


def _with_neighbours(part: FilePart, call: CallPart) -> Iterator[Made]:
    """Put a partner beside those of the flags that stand beside the other calls for the event ("begin" and "end")."""
    partner = PARTNER[call.name]
    for twin in part.calls:
        if twin.name != call.name or twin.event != call.event or twin.key == call.key:
            continue
        body = {key_of(one) for one in part.source.body_of(twin.key)}
        beside = {
            one.arguments
            for one in part.calls
            if one.key in body and one.name == call.name and one.event != call.event
        }
        for other in part.calls:
            if other.name == partner and other.arguments in beside:
                yield 0.0, (Edit(part.source.file, other.key, "after", twin.text(partner)),)
