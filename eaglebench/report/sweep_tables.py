"""Draft shapes side by side: chains by length, and every shape with what a step costs."""

from collections.abc import Sequence
from functools import partial
from math import exp, expm1

from eaglebench.records.knobs import DraftKnobs
from eaglebench.report.phrases import AL_VLLM, LENGTH, Interval, cell_text, several
from eaglebench.report.row_tables import RUN_COLUMNS, length_column
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.sweep import Fastest, Sweep, SweptCell

LENGTHS = f"al_vllm = {AL_VLLM}; {LENGTH}"
UNREPEATED = (
    "cells ran one after the other, so there is no interval, and a machine that was slower for a "
    "while looks like a slower cell; --passes 8 would tell"
)


def sweep_tables(sweeps: Sequence[Sweep]) -> list[Table]:
    """For each sweep the table over K, where there is more than one, and that of all shapes."""
    tables = []
    for number_of, sweep in enumerate(sweeps, start=1):
        place = f"-{number_of}" if len(sweeps) > 1 else ""
        where = f"{sweep.arm}, {sweep.setting}"
        if len({chain.draft.num_steps for chain in sweep.chains}) > 1:
            tables.append(_chains(sweep, f"chains{place}", where))
        tables.append(_shapes(sweep, f"sweep{place}", where))
    return tables


def sweep_answers(sweeps: Sequence[Sweep]) -> list[str]:
    """What each sweep came to, and how surely, in a sentence that names its arm and cell."""
    return [
        f"{sweep.arm}, {sweep.setting}: {fastest_text(sweep.fastest)}{gain_text(sweep)}; "
        f"{certainty_text(sweep.fastest)}"
        for sweep in sweeps
        if sweep.fastest is not None
    ]


def shape_text(draft: DraftKnobs) -> str:
    """A draft shape in words."""
    if not draft.num_steps:
        return "no drafts"
    tree = f", top-k {draft.eagle_topk}, {draft.num_draft_tokens} draft tokens"
    return f"steps {draft.num_steps}" + tree * (not draft.is_chain)


def fastest_text(fastest: Fastest) -> str:
    """The fastest cell and why, in a sentence."""
    mine, rival = fastest.cell.draft, fastest.rival.draft
    rank = "next" if mine.is_chain == rival.is_chain else "best"
    kind = f"{rank} {'chain' if rival.is_chain else 'tree'} ({shape_text(rival)})"
    where = "" if fastest.has_interval else " in this one pass"
    text = f"fastest{where} is {shape_text(mine)}, {fastest.factor:.2f}x the {kind}"
    if fastest.log_factors is None:
        return text
    length, rate, share = fastest.log_factors
    factors = (cell_text(expm1(factor), "short change") for factor in (length, -rate, share))
    acceptance, cost, spent = factors
    return f"{text}: acceptance {acceptance}, a step costs {cost}, share of time spent decoding {spent}"


def gain_text(sweep: Sweep) -> str:
    """What the fastest shape gains over no speculation; empty where nothing ran without drafts."""
    gain, fastest = sweep.gain, sweep.fastest
    if fastest is not None and fastest.cell is sweep.plain:
        return "; no shape gains over no speculation"
    if gain is None:
        return ""
    factor = cell_text(Interval(exp(gain.log_ratio), gain.half_width), "factor")
    return f"; {factor} over no speculation ({several(gain.passes, 'pass')})"


def certainty_text(fastest: Fastest) -> str:
    """How surely the fastest cell is named."""
    if not fastest.has_interval:
        return UNREPEATED
    passes = f"over {fastest.passes} passes"
    if not fastest.tied:
        return f"{passes} it is told apart from every other cell"
    names = "; ".join(shape_text(cell.draft) for cell in fastest.tied)
    return f"{passes} it is not told apart from: {names}"


def _rate(cell: SweptCell) -> Interval | None:
    return Interval(cell.speed.tokens_per_s, cell.rate_half_width) if cell.speed else None


def _against(cell: SweptCell) -> Interval | None:
    """A throughput ratio, with its interval where there were passes to make one from."""
    ratio = cell.ratio
    return Interval(exp(ratio.log_ratio), ratio.half_width) if ratio else None


_LENGTH = length_column("counts.acceptance_length")
_RATE = Column("token/s", _rate, "brief")


def _knob(heading: str, name: str) -> Column:
    return Column(heading, f"draft.{name}", "count")


def _chains(sweep: Sweep, name: str, where: str) -> Table:
    columns = (
        _knob("K", "num_steps"),
        RUN_COLUMNS["verify steps"],
        *(Column(n, f"counts.{n}", "count") for n in ("drafted", "accepted")),
        *(RUN_COLUMNS["al_vllm"], RUN_COLUMNS["by position"], _LENGTH, _RATE),
    )
    title = f"Chains of K drafts ({where})"
    return make_table(columns, sweep.chains, name=name, title=title, remarks=(LENGTHS,))


def _shapes(sweep: Sweep, name: str, where: str) -> Table:
    columns = (
        *(_knob("steps", "num_steps"), _knob("top-k", "eagle_topk")),
        *(_knob("draft tokens", "num_draft_tokens"), _LENGTH),
        *(Column("ms a step", "step_ms", "brief"), _RATE),
        Column(f"against {shape_text(sweep.reference.draft)}", _against, "factor"),
        *([Column("over no speculation", partial(_gain, sweep), "factor")] if sweep.plain else []),
        Column("note", partial(_mark, sweep)),
    )
    fastest = sweep.fastest
    remarks = (fastest_text(fastest), certainty_text(fastest)) if fastest else ()
    title = f"Draft shapes ({where})"
    return make_table(columns, sweep.cells, name=name, title=title, remarks=remarks)


def _gain(sweep: Sweep, cell: SweptCell) -> Interval | None:
    """A cell's throughput over plain decoding."""
    ratio = sweep.gains.get(cell.cell_id)
    return Interval(exp(ratio.log_ratio), ratio.half_width) if ratio else None


def _mark(sweep: Sweep, cell: SweptCell) -> str:
    fastest = sweep.fastest
    tied = fastest.tied if fastest and fastest.has_interval else ()
    marks = {
        "fastest": fastest is not None and cell is fastest.cell,
        "reference": cell is sweep.reference,
        "not told apart": cell in tied,
    }
    return ", ".join(mark for mark, is_on in marks.items() if is_on)
