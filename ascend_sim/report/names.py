"""How reports name things: files without the machine's own paths, places in the user's program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ascend_sim.trace import Item, Site


def short_path(file: str) -> str:
    """Return `file` relative to the current directory if it lies below it, else its last component.

    So that a report's bytes do not depend on where the checkout or the installation lies. Names that
    are no paths (`<stdin>`) stay as they are.
    """
    if not file or file.startswith("<"):
        return file
    path = Path(file)
    if not path.is_absolute():
        return file
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name


class Details:
    """The operands of items in words, each bound instruction's worked out once: loops issue it often."""

    def __init__(self, encode: Callable[[str], str] = str) -> None:
        self._encode = encode
        self._known: dict[int, str] = {}
        self._none = encode("")

    def of(self, item: Item) -> str:
        """Return the operands of `item`, encoded; what stands for nothing where it has none."""
        call = item.call
        if call is None:
            return self._none
        text = self._known.get(id(call))
        if text is None:
            text = self._known[id(call)] = self._encode(call.detail())
        return text


def site_lines(sites: list[Site]) -> list[str]:
    """Return for each site its call stack as `file:line`, innermost frame first, joined by newlines."""
    short: dict[str, str] = {}
    lines = []
    for site in sites:
        for file, _, _ in site.frames:
            if file not in short:
                short[file] = short_path(file)
        lines.append("\n".join(f"{short[file]}:{line}" for file, line, _ in site.frames))
    return lines
