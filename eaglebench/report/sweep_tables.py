"""Draft shapes side by side: chains by length, and every shape with what a step costs."""

from collections.abc import Sequence
from math import exp, expm1

from eaglebench.records.knobs import DraftKnobs
from eaglebench.report.phrases import NO_VALUE, number
from eaglebench.report.text_table import TextTable
from eaglebench.stats.sweep import Fastest, Sweep, SweptCell
from eaglebench.stats.throughput import RatioEstimate

LENGTHS = (
    "al_vllm = 1 + accepted drafts before cutting / verify steps that carried drafts, as vLLM prints "
    "it; accept. length = tokens delivered by verify steps / verify steps"
)
UNREPEATED = (
    "cells ran one after the other, so there is no interval, and a machine that was slower for a "
    "while looks like a slower cell; --passes 8 would tell"
)


def sweep_tables(sweeps: Sequence[Sweep]) -> list[TextTable]:
    """For each sweep the table over K, where there is more than one, and that of all shapes."""
    tables = []
    for number_of, sweep in enumerate(sweeps, start=1):
        place = f"-{number_of}" if len(sweeps) > 1 else ""
        where = f"{sweep.arm}, {sweep.setting}"
        if len({chain.draft.num_steps for chain in sweep.chains}) > 1:
            tables.append(_chains(sweep, f"chains{place}", where))
        tables.append(_shapes(sweep, f"sweep{place}", where))
    return tables


def shape_text(draft: DraftKnobs) -> str:
    """A draft shape in words."""
    if not draft.num_steps:
        return "no drafts"
    if draft.is_chain:
        return f"steps {draft.num_steps}"
    return (
        f"steps {draft.num_steps}, top-k {draft.eagle_topk}, {draft.num_draft_tokens} draft tokens"
    )


def fastest_text(sweep: Sweep) -> str | None:
    """The fastest cell and why, in a sentence; None where fewer than two cells were timed."""
    fastest = sweep.fastest
    if fastest is None:
        return None
    rival = fastest.rival
    rank = "next" if fastest.cell.draft.is_chain == rival.draft.is_chain else "best"
    kind = f"{rank} {'chain' if rival.draft.is_chain else 'tree'}"
    where = "" if fastest.has_interval else " in this one pass"
    text = f"fastest{where} is {shape_text(fastest.cell.draft)}, {fastest.factor:.2f}x the {kind} "
    text += f"({shape_text(rival.draft)})"
    if fastest.log_factors is None:
        return text
    acceptance, rate, share = fastest.log_factors
    return (
        f"{text}: acceptance {expm1(acceptance):+z.1%}, a step costs {expm1(-rate):+z.1%}, "
        f"share of time spent decoding {expm1(share):+z.1%}"
    )


def certainty_text(fastest: Fastest) -> str:
    """How surely the fastest cell is named."""
    if not fastest.has_interval:
        return UNREPEATED
    passes = f"over {fastest.passes} passes"
    if not fastest.tied:
        return f"{passes} it is told apart from every other cell"
    names = "; ".join(shape_text(cell.draft) for cell in fastest.tied)
    return f"{passes} it is not told apart from: {names}"


def _chains(sweep: Sweep, name: str, where: str) -> TextTable:
    return TextTable(
        id=name,
        caption=f"Chains of K drafts ({where})",
        columns=(
            *("K", "verify steps", "drafted", "accepted", "al_vllm", "by position"),
            *("accept. length", "token/s"),
        ),
        rows=tuple(
            (
                str(chain.draft.num_steps),
                number(chain.counts.verify_steps, "d"),
                number(chain.counts.drafted, "d"),
                number(chain.counts.accepted, "d"),
                number(chain.counts.al_vllm, ".3f"),
                " ".join(f"{share:.2f}" for share in chain.by_position) or NO_VALUE,
                number(chain.counts.acceptance_length, ".3f"),
                _rate(chain),
            )
            for chain in sweep.chains
        ),
        alignment="r" * 8,
        remarks=(LENGTHS,),
    )


def _shapes(sweep: Sweep, name: str, where: str) -> TextTable:
    remarks = []
    if sweep.fastest is not None:
        remarks = [str(fastest_text(sweep)), certainty_text(sweep.fastest)]
    return TextTable(
        id=name,
        caption=f"Draft shapes ({where})",
        columns=(
            *("steps", "top-k", "draft tokens", "accept. length", "ms a step", "token/s"),
            f"against {shape_text(sweep.reference.draft)}",
            "note",
        ),
        rows=tuple(
            (
                str(cell.draft.num_steps),
                str(cell.draft.eagle_topk),
                str(cell.draft.num_draft_tokens),
                number(cell.counts.acceptance_length, ".3f"),
                number(cell.step_ms, ".2f"),
                _rate(cell),
                _against(cell.ratio),
                _mark(cell, sweep),
            )
            for cell in sweep.cells
        ),
        alignment="r" * 7 + "l",
        remarks=tuple(remarks),
    )


def _rate(cell: SweptCell) -> str:
    if cell.speed is None:
        return NO_VALUE
    shown = f"{cell.speed.tokens_per_s:.2f}"
    if cell.rate_half_width is None:
        return shown
    return f"{shown} +- {cell.rate_half_width:.1%}"


def _against(ratio: RatioEstimate | None) -> str:
    """A throughput ratio, with its interval where there were passes to make one from."""
    if ratio is None:
        return NO_VALUE
    shown = f"{exp(ratio.log_ratio):.3f}x"
    return shown if ratio.half_width is None else f"{shown} +- {ratio.half_width:.1%}"


def _mark(cell: SweptCell, sweep: Sweep) -> str:
    fastest = sweep.fastest
    marks = []
    if fastest is not None and cell is fastest.cell:
        marks.append("fastest")
    if cell is sweep.reference:
        marks.append("reference")
    if fastest is not None and fastest.has_interval and cell in fastest.tied:
        marks.append("not told apart")
    return ", ".join(marks)
