"""Run the mutation corpus and print its figures: `python tests/mutation/run.py [SUBJECT …]`.

Every kernel of examples/, ops/ and benchmarks/measured/, every statement of synchronisation and every address and
stride in it, one change at a time. Without names all subjects; `--sample N` takes one mutant in N; `--no-doctor`
leaves the doctor out; `--list` prints each mutant and what came of it, subject by subject.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.mutation.corpus import Case, Verdict, label_of, sample  # noqa: E402
from tests.mutation.subjects import LEFT_OUT, subjects, without_subjects  # noqa: E402

EQUIVALENT = Path(__file__).with_name("equivalent.txt")
RANK = {"same": 0, "missed": 1, "numbers": 2, "error": 3, "finding": 4}
CURED = ("dropped", "moved up", "moved down")
"""Mutants that the doctor is asked about, of synchronisation that something was found about."""
HEAVY = 1000
"""Items of a run from which the doctor looks at one mutant in `HEAVY_SHARE` only."""
HEAVY_SHARE = 12


def equivalent() -> dict[str, str]:
    """Return the mutants that are argued to change nothing, with the argument."""
    found = {}
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, _, reason = line.rpartition(" => ")
            found[label] = reason
    return found


def perform(
    names: list[str] | None, share: int, *, doctor: bool, listed: bool = False
) -> tuple[list[Verdict], list[str]]:
    """Return what came of each mutant, the best of all subjects that run its line, and what unchanged kernels have."""
    best: dict[tuple[str, object], Verdict] = {}
    wrong = []
    for subject in subjects(names):
        case = Case(subject)
        if case.base.findings:
            wrong.append(f"{subject.name}: {case.base.findings[0].code}")
        for mutant in case.mutants():
            label = label_of(mutant)
            key = (label, mutant.edit)
            known = best.get(key)
            if not sample(label, share) or (
                known is not None and RANK[known.how] >= RANK["numbers"]
            ):
                continue
            verdict = case.judge(mutant)
            gc.collect()  # runs hold each other's parts, and the simulator leaves rings to whoever has time
            if known is not None and RANK[known.how] >= RANK[verdict.how]:
                continue
            best[key] = verdict
            asked = mutant.family not in ("address", "stride") and mutant.kind in CURED
            light = case.items < HEAVY or sample(label + "?", HEAVY_SHARE)
            if doctor and asked and light and verdict.how == "finding":
                case.cure(verdict)
            if listed:
                cure = f" | {verdict.cure}: {verdict.edit}" if verdict.cure else ""
                said = f"{verdict.how} {verdict.code or verdict.why}"
                print(f"{said} | line {mutant.edit.line} | {label}{cure}", flush=True)
        print(f"{subject.name}: done", file=sys.stderr, flush=True)
    return list(best.values()), wrong


def _per_cent(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


def figures(verdicts: Iterable[Verdict], wrong: list[str]) -> tuple[list[str], bool]:
    """Return the figures as lines, and whether they are what is asked for."""
    verdicts = list(verdicts)
    argued = equivalent()
    proved = [one for one in verdicts if one.how == "same" and one.why]
    listed = [one for one in verdicts if one.how == "same" and not one.why and one.label in argued]
    missed = [
        one
        for one in verdicts
        if one.how == "missed" or (one.how == "same" and not one.why and one.label not in argued)
    ]
    shown = [one for one in verdicts if one.how in ("finding", "error", "numbers")]
    findings = [one for one in shown if one.how == "finding"]
    causes = [one for one in findings if one.cause_right]
    asked = [one for one in verdicts if one.cure is not None]
    right = [one for one in asked if one.cure == "right"]
    counts = Counter(one.how for one in shown)
    why = Counter(one.why for one in proved)
    reasons = ", ".join(f"{count:,} as {reason}" for reason, count in why.items()) or "0 proved"
    lines = [
        f"{len(verdicts):,} mutants of {len({one.mutant.edit.file for one in verdicts})} files",
        f"equivalent: {reasons}, {len(listed):,} by argument ({EQUIVALENT.name})",
        f"detected: {_per_cent(len(shown), len(shown) + len(missed))} of the others: by a finding "
        f"{counts['finding']:,}, by Python {counts['error']:,}, by wrong numbers alone {counts['numbers']:,}",
        f"right first cause: {_per_cent(len(causes), len(findings))}",
        f"kernels as they are: {len(wrong)} with findings",
        f"doctor's edit right: {_per_cent(len(right), len(asked))} of dropped and moved synchronisation, wrong "
        f"{sum(one.cure == 'wrong' for one in asked)}, trials a mutant "
        f"{sum(one.trials for one in asked) / max(len(asked), 1):.0f}",
        f"measured programs without a small problem yet: {', '.join(without_subjects())}",
        f"left out, without a flow of data: {', '.join(LEFT_OUT)}",
    ]
    lines += [f"  missed: {one.label}" for one in missed]
    lines += [f"  wrong cause: {one.label} ({one.code})" for one in findings if not one.cause_right]
    lines += [f"  as it is: {text}" for text in wrong]
    good = (
        len(shown) >= 0.99 * (len(shown) + len(missed))
        and len(causes) >= 0.9 * len(findings)
        and len(right) >= 0.8 * len(asked)
        and not wrong
    )
    return lines, good


def main() -> int:
    """Run the corpus; exit with 1 where a figure is below what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="subjects, or the beginnings of their names")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one mutant in N")
    parser.add_argument("--no-doctor", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    verdicts, wrong = perform(
        given.names or None, given.sample, doctor=not given.no_doctor, listed=given.list
    )
    lines, good = figures(verdicts, wrong)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
