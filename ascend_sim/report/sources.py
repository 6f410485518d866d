"""The user's source files: their text beside the log, and which lines of two versions are the same."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ascend_sim.report.names import short_path
from ascend_sim.trace import Site

_LARGEST = 400_000


def source_texts(sites: Iterable[Site]) -> dict[str, str]:
    """Return the text of each file that a call stands in, by its short path; files that are gone are left out."""
    texts: dict[str, str] = {}
    for file in dict.fromkeys(file for site in sites for file, _, _ in site.frames):
        path = Path(file)
        if not file.startswith("<") and path.is_file() and path.stat().st_size <= _LARGEST:
            texts[short_path(file)] = path.read_text(encoding="utf-8", errors="replace")
    return texts


def line_map(old: str, new: str) -> dict[int, int]:
    """Return for each line of `new` that `old` has, too, its number there."""
    if old == new:
        return {number: number for number in range(1, new.count("\n") + 2)}
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        block.b + step + 1: block.a + step + 1
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }


class Lines:
    """Names the places of a second run by those of the first: lines that only moved keep their names.

    Files of one name are two versions of one file where at least half of the shorter one's lines are in both.
    """

    def __init__(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self._maps = {}
        self._others: set[str] = set()
        for file, text in new.items():
            if file in old:
                found = line_map(old[file], text)
                if 2 * len(found) >= min(old[file].count("\n"), text.count("\n")):
                    self._maps[file] = found
                else:  # another file that happens to have the same name
                    self._others.add(file)

    @property
    def shared(self) -> bool:
        """Whether any file is in both, as it was or changed."""
        return bool(self._maps)

    def old(self, place: str) -> str:
        """Return the first run's name of a `file:line` of the second; the own one, marked, of a new line."""
        file, _, line = place.rpartition(":")
        if file in self._others:
            return f"{place} (new)"
        known = self._maps.get(file)
        if known is None or not line.isdigit():
            return place
        number = known.get(int(line))
        return f"{file}:{number}" if number is not None else f"{place} (new)"
