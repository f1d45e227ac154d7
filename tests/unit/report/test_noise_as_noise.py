"""Times that are not known well are not shown as facts; lengths go by their names."""

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from eaglebench.report.notes import time_notes
from eaglebench.report.phrases import speed_text, split_text, three_lengths, throughput_text
from eaglebench.report.rows import Row
from eaglebench.stats.difference import Difference
from eaglebench.stats.throughput import RatioEstimate
from tests.sessions import make_talk
from tests.unit.report.toy_documents import make_document


def make_row(root: Path) -> Row:
    """The cache arm of a toy run."""
    return make_document(root).rows[0]


def estimated(row: Row, factor: float, half_width: float | None, passes: int) -> Difference:
    """Its difference, as if passes had given this."""
    assert row.difference is not None
    ratio = RatioEstimate(
        log_ratio=log(factor), half_width=half_width, error=0.1, sd=0.1, passes=passes, drift=None
    )
    return replace(row.difference, ratio=ratio, throughput=0.731, log_ratio=(0.0, 0.3, 0.2))


def test_the_table_shows_the_paired_estimate_with_its_half_width(tmp_path: Path) -> None:
    """Not the pooled ratio beside it."""
    found = estimated(make_row(tmp_path), 1.3411, 0.8423, 8)

    assert speed_text(found) == "+34.1% +- 84.2%"
    assert throughput_text(found) == "+34.11% +- 84.23% (8 passes)"


def test_one_pass_is_no_more_than_that(tmp_path: Path) -> None:
    """Marked, and counted; the exact part of the split is not marked."""
    found = estimated(make_row(tmp_path), 1.643, None, 1)

    assert speed_text(found) == "~+64.3%"
    assert throughput_text(found) == "~+64.30% (1 pass)"
    text = split_text(found)
    assert text is not None
    assert text.startswith("throughput ~+64.9% = acceptance +0.0% x step rate ~+35.0%")
    assert text.endswith("(1 pass)")


@pytest.mark.parametrize(("half_width", "is_split"), [(0.01, True), (0.05, True), (0.5, False)])
def test_a_ratio_that_is_not_told_from_one_is_not_split(
    tmp_path: Path, half_width: float, is_split: bool
) -> None:
    """Its parts would be noise."""
    found = estimated(make_row(tmp_path), 1.1, half_width, 8)

    assert (split_text(found) is not None) == is_split


def test_three_lengths_go_by_their_names(tmp_path: Path) -> None:
    """Ours, SGLang's and vLLM's, which differ in what they count."""
    row = make_row(tmp_path)

    assert three_lengths(row) == (
        f"radix: acceptance length {row.counts.acceptance_length:.3f}, al_sglang "
        f"{row.counts.al_sglang:.3f} (in the lines to paste), al_vllm {row.counts.al_vllm:.3f} (1 + "
        "the shares by position, cut tokens counted)"
    )


def test_mixed_steps_and_donors_are_told(tmp_path: Path) -> None:
    """The split leaves the ones out and counts the others."""
    talks = [make_talk("a", "First.", "Then?", measured=[False, True])]
    document = make_document(tmp_path, talks=talks)
    (row, _) = document.rows
    assert row.speed is not None
    mixed = replace(row, speed=replace(row.speed, mixed_share=0.337))

    first, second = time_notes([mixed], document.run.turns)
    assert "took radix 34% of the time" in first
    assert second.startswith("token/s and splits count 1 turn that only prepared others")
    assert time_notes([row], [t for t in document.run.turns if t.is_measured]) == []
