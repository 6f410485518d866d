"""The accuracy card: a campaign's result as a document, and the file that it is made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_sim.accuracy.measure import PIPES, TIMES
from ascend_sim.accuracy.notes import load_notes
from ascend_sim.accuracy.score import error, shift, spread

Row = Mapping[str, Any]
WORST = 12
"""Records of grades A and B that the card names as the worst."""
DIGITS = 4


# ---- the file -------------------------------------------------------------------------------


def save_result(result: Row, path: Path) -> None:
    """Write what the card needs of a result: a line a record and a pair, figures to four digits."""
    lines = ["{"]
    for key, value in result.items():
        if key in ("records", "pairs"):
            rows = ",\n".join(json.dumps(_short(row)) for row in value)
            lines.append(f'"{key}": [\n{rows}\n],')
        else:
            lines.append(f'"{key}": {json.dumps(_rounded(value))},')
    lines[-1] = lines[-1].rstrip(",")
    path.write_text("\n".join([*lines, "}"]) + "\n", encoding="utf-8")


def load_result(path: Path) -> dict[str, Any]:
    """Read such a file."""
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _short(row: Row) -> Row:
    """Return a row with the simulated figures that are compared, or that every record has."""
    if "simulated" not in row or not isinstance(row["simulated"], Mapping):
        return _rounded(row)  # type: ignore[no-any-return]
    kept = {*TIMES, *(row.get("ln_ratio") or {}), "simulated_part"}
    simulated = {key: value for key, value in row["simulated"].items() if key in kept}
    return _rounded(dict(row) | {"simulated": simulated})  # type: ignore[no-any-return]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return value


# ---- the card -------------------------------------------------------------------------------


def card(result: Row) -> str:
    """Return the card as Markdown: what was compared, errors, worst cases and why, what is not modelled."""
    records, pairs = result["records"], result["pairs"]
    parts = [
        _compared(result),
        "## Error by grade\n\n" + _grades(result["summary"]),
        "## Error by kind of kernel\n\n" + _kinds(records),
        "## Gains\n\n" + _gains(pairs),
        "## The worst records of grades A and B, and why\n\n" + _worst(records),
        "## All records\n\n" + _all(records),
        "## Simulated in part\n\n" + _parts(records),
        "## Not modelled\n\n" + "\n".join(f"* {line}" for line in load_notes().not_modelled),
    ]
    return "\n\n".join(parts) + "\n"


def _compared(result: Row) -> str:
    records, pairs = result["records"], result["pairs"]
    open_records = sum(bool(row["measured"]) for row in records)
    gains = sum(row["measured"] is not None for row in pairs)
    chips = ", ".join(f"{name} revision {number}" for name, number in result["chips"].items())
    return (
        f"{len(records)} records of {len({row['family'] for row in records})} families of kernels, "
        f"{open_records} of them with figures here; {len(pairs)} pairs, {gains} with a gain here. "
        f"Chip files: {chips}. The run took {result['cpu_s'] / 60:.0f} minutes of CPU."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _grades(summary: Row) -> str:
    return _table(
        (
            "grade", "records with a whole time", "median", "nine in ten", "pipe times", "median", "nine in ten",
            "gains", "median", "right in sign",
        ),
        [
            (
                grade, *_spread(part["whole"]), *_spread(part["pipes"]), str(part["pairs"]["count"]),
                _percent(part["pairs"]["median"]), f"{part['signs_right']} of {part['signs']}",
            )
            for grade, part in summary.items()
        ],
    )  # fmt: skip


def _spread(values: Row) -> tuple[str, str, str]:
    return str(values["count"]), _percent(values["median"]), _percent(values["p90"])


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _kinds(records: Sequence[Row]) -> str:
    rows = []
    for kind, families in load_notes().kinds.items():
        mine = [row for row in records if row["family"] in families]
        whole = [row["whole_error"] for row in mine if row.get("whole_error") is not None]
        sides = [
            shift(row["ln_ratio"][row["whole"]])
            for row in mine
            if row.get("whole_error") is not None
        ]
        pipes = [
            error(row["ln_ratio"][pipe])
            for row in mine
            for pipe in PIPES
            if pipe in (row.get("ln_ratio") or {})
        ]
        side = f"{sum(sides) / len(sides):+.3f}" if sides else ""
        rows.append((kind, str(len(mine)), *_spread(spread(whole)), side, *_spread(spread(pipes))))
    head = ("kind", "records", "with a whole time", "median", "nine in ten", "mean of ln")
    return _table((*head, "pipe times", "median", "nine in ten"), rows)


def _gains(pairs: Sequence[Row]) -> str:
    words = {True: "right", False: "**wrong**", None: ""}
    return _table(
        ("pair", "grade", "what changed", "figure", "measured", "simulated", "sign"),
        [
            (
                row["id"], row["grade"], row["what_changed"], row["metric"], _figure(row["measured"]),
                _figure(row["simulated"]), words[row["sign"]],
            )
            for row in pairs
            if row["measured"] is not None
        ],
    )  # fmt: skip


def _worst(records: Sequence[Row]) -> str:
    rated = [row for row in records if row["grade"] in "AB" and row.get("whole_error") is not None]
    rated.sort(key=lambda row: row["whole_error"], reverse=True)
    notes = load_notes().notes
    rows = []
    for row in rated[:WORST]:
        note = notes.get(row["family"])
        rows.append(
            (
                row["id"], row["grade"], row["whole"], _figure(row["measured"][row["whole"]]),
                _figure(row["simulated"].get(row["whole"])), f"{row['whole_error']:.3f}",
                f"{note.cause}: {note.why}" if note else "not known",
            )
        )  # fmt: skip
    head = ("record", "grade", "figure", "measured", "simulated", "off by", "why")
    others = [
        f"* `{family}` ({note.cause}): {note.why}."
        for family, note in notes.items()
        if family not in {row["family"] for row in rated[:WORST]}
    ]
    return _table(head, rows) + "\n\nWhat is known of other families:\n\n" + "\n".join(others)


def _all(records: Sequence[Row]) -> str:
    rows = []
    for row in records:
        if "error" in row:
            rows.append((row["id"], row["grade"], "not simulated: " + row["error"], "", "", "", ""))
            continue
        ratios = row["ln_ratio"]
        name = row["whole"] or "task_us"
        pipes = " ".join(
            f"{pipe[:-3]} {shift(ratios[pipe]):+.2f}" for pipe in PIPES if pipe in ratios
        )
        rows.append(
            (
                row["id"], row["grade"], name, _figure((row["measured"] or {}).get(name)),
                _figure(row["simulated"].get(name)),
                f"{shift(ratios[name]):+.3f}" if name in ratios else "", pipes,
            )
        )  # fmt: skip
    return _table(("record", "grade", "figure", "measured", "simulated", "ln", "pipes: ln"), rows)


def _figure(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        shown = [_figure(one) or "-" for one in value]
        return ", ".join(shown if len(shown) <= 4 else [*shown[:2], "…", shown[-1]])
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_figure(one)}" for key, one in list(value.items())[:3]) + ", …"
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _parts(records: Sequence[Row]) -> str:
    lines = []
    for row in records:
        part = (row["simulated"] or {}).get("simulated_part")
        if part:
            texts = part if isinstance(part, list) else [part]
            lines.append(
                f"* `{row['id']}`: " + "; ".join(dict.fromkeys(text for text in texts if text))
            )
    return "\n".join(lines)
