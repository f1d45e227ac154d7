"""Tables of a run's cells and arms: what each measured, how it differs from others, where it parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from eaglebench.records.counters import share
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import (
    COMPARED,
    LEADS,
    NO_VALUE,
    Value,
    leads_text,
    questions_answered,
    throughput_text,
    why_text,
)
from eaglebench.report.rows import ROW_VALUES, Row
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import NOT_PAIRED, Pair, PairClass
from eaglebench.stats.prefix import CommonPrefix

KINDS: tuple[PairClass, ...] = (
    *("target-state", "draft-state", "failed", "other-prompts", "near-tie", "diverged-prompt"),
)
"""Gravest first, so that a cut takes what matters least."""
NAMES = ("cell_id", "arm")
SPEED = ("step_rate", "decode_share", "mixed_share", "wall_s")


class Held(NamedTuple):
    """A cell and arm held against another arm, on one turn if there is a pair."""

    row: Row
    difference: Difference
    pair: Pair | None = None


def length_column(value: str) -> Column:
    """The acceptance length of an item's counts."""
    return Column("acceptance length", value, "ratio", short="accept.\nlength")


def _count(heading: str, name: str) -> Column:
    return Column(heading, f"counts.{name}", "count")


RUN_COLUMNS = {
    column.heading: column
    for column in (
        Column("cell", "cell_id"),
        Column("arm", "arm", filter="arm"),
        Column("questions", questions_answered, is_right=True),
        length_column("counts.acceptance_length"),
        Column("al_sglang", "counts.al_sglang", "ratio"),
        Column("al_vllm", "counts.al_vllm", "ratio"),
        Column("by position", "by_position", "brief", short="by position"),
        Column("token/s", "tokens_per_s", "brief"),
        _count("verify steps", "verify_steps"),
        _count("cached tokens", "cached_tokens"),
        _count("prefilled tokens", "prefill_tokens_computed"),
        _count("pages taken", "pages_allocated"),
        _count("alloc calls", "alloc_calls"),
        _count("evictions", "evictions"),
        Column(f"length against {BASELINE_ARM}", "difference.acceptance", "change"),
        Column(
            f"throughput against {BASELINE_ARM}",
            read("difference", throughput_text),
            is_right=True,
        ),
        Column("why", why_text),
    )
}


def runs_table(rows: Sequence[Row], *headings: str, **about: Any) -> Table:
    """One row a cell and arm."""
    return make_table([RUN_COLUMNS[heading] for heading in headings], rows, **about)


def judged_table(document: ReportDocument, rows: Sequence[Row], *headings: str) -> Table:
    """One row a cell and arm, with the heaviest verdict on each."""
    verdict = Column("verdict", document.verdict_on, "verdict")
    columns = RUN_COLUMNS | {"verdict": verdict}
    return make_table([columns[heading] for heading in headings], rows)


def values_table(rows: Sequence[Row]) -> Table:
    """Everything that was measured, under the names of the record format."""
    dicts = [row.as_dict() for row in rows]
    return make_table([Column(name, itemgetter(name), "exact") for name in ROW_VALUES], dicts)


def counters_table(rows: Sequence[Row]) -> Table:
    """The same of a few arms, one beside the other, and what their times say."""
    names = [name for name in ROW_VALUES if name not in NAMES]
    columns = [Column("counter", str)]
    for row in rows:
        values = row.as_dict() | {name: getattr(row.speed, name, None) for name in SPEED}
        columns.append(Column(row.arm, values.__getitem__, "exact"))
    return make_table(columns, [*names, *SPEED])


def positions_table(rows: Sequence[Row]) -> Table:
    """Acceptance by position, a row an arm; without a row where nothing was drafted."""
    depth = max(len(row.by_position) for row in rows)
    columns = [Column(str(place + 1), partial(_position, place), "exact") for place in range(depth)]
    return make_table([RUN_COLUMNS["arm"], *columns], rows if depth else ())


def _position(place: int, row: Row) -> float | None:
    return row.by_position[place] if place < len(row.by_position) else None


_HELD = (
    Column("cell", "row.cell_id"),
    Column("arm", "row.arm", filter="arm"),
    Column("against", "difference.against"),
)


def differences_table(rows: Sequence[Row]) -> Table:
    """Every cell and arm against each arm that it is compared with."""
    columns = (
        *_HELD,
        Column("throughput", read("difference", throughput_text), is_right=True),
        Column("acceptance length", "difference.acceptance", "change"),
        *(Column(kind, partial(_of_kind, kind), "count") for kind in (*COMPARED, *NOT_PAIRED)),
        Column("same output", "difference.num_same_output", "count"),
        Column("p(shorter)", "difference.p_value", "p"),
        Column("smallest detectable", "difference.ratio.mde", "share"),
        Column("drift over passes", "difference.ratio.drift", "change"),
    )
    return make_table(columns, held_rows(rows))


def held_rows(rows: Sequence[Row]) -> list[Held]:
    """Every cell and arm with everything it is held against."""
    return [Held(row, difference) for row in rows for difference in row.differences]


def _of_kind(kind: PairClass, held: Held) -> int:
    return held.difference.count(kind)


def _common_length(side: str, prefix: CommonPrefix) -> float | None:
    return share(getattr(prefix, f"{side}emitted"), getattr(prefix, f"{side}verify_steps"))


PARTING_COLUMNS = (
    Column("question", "pair.question_id"),
    Column("turn", read("pair.turn", lambda turn: turn + 1), "count"),  # people count from 1
    *_HELD,
    Column("tier", "pair.tier"),
    Column("class", "pair.kind", filter="kind"),
    Column("first choice", "pair.parting.side"),
    Column("step", "pair.parting.step", "count"),
    Column("position", "pair.parting.position", "count"),
    Column(LEADS, read("pair.parting", leads_text), is_right=True),
    Column("common tokens", "pair.prefix.num_tokens", "count"),
    Column("length on them", read("pair.prefix", partial(_common_length, "")), "ratio"),
    Column("other arm's length", read("pair.prefix", partial(_common_length, "other_")), "ratio"),
    Column("more verify steps", "pair.verify_steps_difference", "signed"),
)


_AGAINST = next(n for n, column in enumerate(PARTING_COLUMNS) if column.heading == "against")


def partings_table(rows: Sequence[Row]) -> Table:
    """Every turn that is not the same in both arms, gravest class first.

    One that parts alike from several arms stands once and names them all.
    """
    found = [
        Held(row, difference, pair)
        for kind in KINDS
        for row, difference, _ in held_rows(rows)
        for pair in difference.pairs
        if pair.kind == kind
    ]
    title = "Turns that differ between two arms, gravest class first"
    table = make_table(PARTING_COLUMNS, found, name="partings", title=title)
    alike: dict[tuple[Value, ...], list[str]] = {}
    for row in table.rows:
        key = (*row[:_AGAINST], *row[_AGAINST + 1 :])
        alike.setdefault(key, []).append(str(row[_AGAINST]))
    merged = tuple(
        (*key[:_AGAINST], ", ".join(names), *key[_AGAINST:]) for key, names in alike.items()
    )
    return replace(table, rows=merged)


def facts_table(name: str, title: str, facts: Mapping[str, Any]) -> Table:
    """Names and values as the run holds them, nested ones with dotted names."""
    columns = (Column("name", itemgetter(0)), Column("value", lambda fact: _shown(fact[1])))
    return make_table(columns, _flat(facts).items(), name=name, title=title)


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        is_nested = isinstance(value, Mapping) and value
        flat |= _flat(value, f"{prefix}{name}.") if is_nested else {f"{prefix}{name}": value}
    return flat


def _shown(value: Any) -> str | None:
    if value is None or value in ("", [], {}, ()):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(entry) or NO_VALUE for entry in value)
    return str(value)
