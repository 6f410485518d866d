"""Findings that the kernel's author allows, on their line and with a reason.

    asc.add(a, a, b, n)  # ascend-sim: allow race-raw: tiles of one round never meet, see plan()

A comment holds for the statement that it stands at, and for a race also where the earlier access stands there. What
stops a kernel cannot be allowed. A comment without a reason allows nothing; one that is not needed is told of.
"""

from __future__ import annotations

import ast
import io
import linecache
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ascend_sim.chip_file import nearest
from ascend_sim.codes import finding_codes
from ascend_sim.errors import Finding
from ascend_sim.trace import Site

_MARK = "ascend-sim:"
_FORM = re.compile(
    r"#\s*ascend-sim:\s*allow\s+(?P<codes>[\w-]+(?:\s*,\s*[\w-]+)*)\s*(?::\s*(?P<reason>\S.*))?$"
)


@dataclass(frozen=True, slots=True)
class Allowance:
    """One comment: the lines of its statement, the codes, the reason ("" where none is given)."""

    file: str
    line: int
    first: int
    last: int
    codes: tuple[str, ...]
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Return whether it allows a finding."""
        return bool(self.reason) and finding.code in self.codes and self._is_here(finding)

    def _is_here(self, finding: Finding) -> bool:
        places = [(finding.file, finding.line)]
        places += [(one["file"], one["line"]) for one in finding.related]
        return any(file == self.file and self.first <= line <= self.last for file, line in places)


def allowances(file: str) -> tuple[Allowance, ...]:
    """Return the comments of a file; none of one that cannot be read."""
    lines = linecache.getlines(file)
    text = "".join(lines)
    return _read(file, text) if _MARK in text else ()


@lru_cache(maxsize=64)
def _read(file: str, text: str) -> tuple[Allowance, ...]:
    try:
        tree = ast.parse(text)
        comments = [
            token
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and _MARK in token.string
        ]
    except (SyntaxError, tokenize.TokenError):
        return ()
    found = []
    for token in comments:
        line = token.start[0]
        form = _FORM.search(token.string)
        codes = re.split(r"\s*,\s*", form["codes"]) if form else []
        first, last = _statement(tree, line)
        reason = (form["reason"] or "").strip() if form else ""
        found.append(Allowance(file, line, first, last, tuple(codes), reason))
    return tuple(found)


def _statement(tree: ast.Module, line: int) -> tuple[int, int]:
    """Return the lines of the smallest simple statement around a line; of a compound one, its head alone."""
    best = (line, line)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            last = node.end_lineno or node.lineno
            if node.lineno <= line <= last:
                best = node.lineno, last
    return best


def is_allowed(finding: Finding) -> bool:
    """Return whether a finding's own or related lines allow it."""
    files = {finding.file, *(one["file"] for one in finding.related)}
    return any(one.covers(finding) for file in files if file for one in allowances(file))


def apply(
    findings: Sequence[Finding], sites: Iterable[Site], stopped: Finding | None = None
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """Return the findings that stay, with remarks on comments, and those that are allowed, each with its reason.

    `stopped` is what ended the run, which nothing allows. Remarks are INFO: a comment
    that the run came past and that allowed nothing, a code that there is not, a comment without a reason.
    """
    lines: dict[str, set[int]] = {}
    for site in sites:
        for file, line, _ in site.frames:
            lines.setdefault(file, set()).add(line)
    comments = [one for file in lines for one in allowances(file)]
    if not comments:
        return list(findings), []
    stay, allowed, used = [], [], set()
    for finding in findings:
        mine = next((one for one in comments if one.covers(finding)), None)
        if mine is None or finding is stopped:
            stay.append(finding)
        else:
            used |= {(one, finding.code) for one in comments if one.covers(finding)}
            allowed.append((finding, mine.reason))
    for one in comments:
        if lines[one.file].isdisjoint(range(one.first, one.last + 1)):
            continue
        stay += _remarks(one, {code for comment, code in used if comment is one})
    return stay, allowed


def _remarks(one: Allowance, used: set[str]) -> list[Finding]:
    known = {code for _, code in finding_codes()}
    if not one.codes:
        return [
            Finding(
                "INFO",
                "allow-form",
                "this comment allows nothing; write `# ascend-sim: allow CODE: reason`",
                one.file,
                one.line,
            )
        ]
    if not one.reason:
        return [
            Finding(
                "INFO",
                "allow-without-reason",
                f"`allow {', '.join(one.codes)}` has no reason and allows nothing: add one behind a colon",
                one.file,
                one.line,
            )
        ]
    remarks = []
    for code in one.codes:
        if code not in known:
            remarks.append(
                Finding(
                    "INFO",
                    "allow-unknown",
                    f"`allow {code}`: there is no such code{nearest(code, known)}",
                    one.file,
                    one.line,
                )
            )
        elif code not in used:
            remarks.append(
                Finding(
                    "INFO",
                    "allow-unused",
                    f"`allow {code}` is not needed: this run finds no such thing here",
                    one.file,
                    one.line,
                )
            )
    return remarks
