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

    Two files are versions of one where at least half of the shorter one's lines are in both. Files of one name come
    first; of those that only one run has, the most alike. `renamed` has the new names of these and the old ones.
    """

    def __init__(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self._maps: dict[str, tuple[str, dict[int, int]]] = {}
        self._others: set[str] = set()
        for file, text in new.items():
            if file in old:
                found = _versions(old[file], text)
                if found is not None:
                    self._maps[file] = file, found
                else:  # another file that happens to have the same name
                    self._others.add(file)
        self.renamed = self._match(
            {file: text for file, text in old.items() if file not in self._maps},
            {file: text for file, text in new.items() if file not in self._maps},
        )

    def _match(self, old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
        """Take files of other names for versions of one, those with the most lines in common first."""
        candidates = [
            (len(found), before, after, found)
            for before, was in old.items()
            for after, text in new.items()
            if before != after and (found := _versions(was, text)) is not None
        ]
        renamed: dict[str, str] = {}
        for _, before, after, found in sorted(candidates, key=lambda one: (-one[0], *one[1:3])):
            if after not in renamed and before not in renamed.values():
                renamed[after] = before
                self._maps[after] = before, found
                self._others.discard(after)
        return renamed

    @property
    def shared(self) -> bool:
        """Whether any file is in both, as it was or changed."""
        return bool(self._maps)

    def old(self, place: str) -> str:
        """Return the first run's name of a `file:line` of the second; the own one, marked, of a new line."""
        file, _, line = place.rpartition(":")
        if file in self._others:
            return f"{place} (new)"
        if file not in self._maps or not line.isdigit():
            return place
        before, known = self._maps[file]
        number = known.get(int(line))
        return f"{before}:{number}" if number is not None else f"{place} (new)"


def _versions(old: str, new: str) -> dict[int, int] | None:
    """Return which lines of two versions of a file are the same; None where they are not versions of one."""
    found = line_map(old, new)
    shorter = min(old.count("\n"), new.count("\n"))
    return found if found and 2 * len(found) >= shorter else None
