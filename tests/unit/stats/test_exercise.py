"""What could not show: faults and axes that no question reached."""

from dataclasses import replace

import pytest

from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.acceptance import pool
from eaglebench.stats.exercise import (
    NO_ACCEPTED,
    NO_DRAFT,
    NO_EVICTION,
    NO_HIT,
    ONE_CHUNK,
    why_axes_idle,
    why_idle,
)
from tests.turns import make_step, make_turn


def make_reached(chunk: int | None = None, **counters: int) -> MeasuredTurn:
    """A turn of ten prompt tokens with these counts."""
    turn = make_turn(make_step(10, (3, 4), (3, 4, 5), 2), counters=counters)
    return replace(turn, knobs=EngineKnobs(chunked_prefill_size=chunk))


@pytest.mark.parametrize(
    ("arm", "turn", "reason"),
    [
        ("radix", make_reached(), NO_HIT),
        ("radix:again", make_reached(), NO_HIT),
        ("radix", make_reached(cached_tokens=1), None),
        ("unigram", make_reached(), NO_HIT),
        ("unigram", make_reached(cached_tokens=1), None),
        ("seam-guess", make_reached(), ONE_CHUNK),
        ("seam-last", make_reached(), ONE_CHUNK),
        ("seam-guess", make_reached(chunk=10), ONE_CHUNK),
        ("seam-guess", make_reached(chunk=9), None),
        ("kv-reuse", make_reached(accepted=0), NO_ACCEPTED),
        ("kv-reuse", make_reached(), None),
        ("no-lookahead", make_reached(drafted=0), NO_DRAFT),
        ("no-cache", make_reached(), None),
        ("force-miss", make_reached(), None),
    ],
)
def test_an_arm_is_idle_where_it_was_not_reached(
    arm: str, turn: MeasuredTurn, reason: str | None
) -> None:
    """A cache without a hit, a seam without chunks; `no-cache` has nothing to be reached."""
    assert why_idle(arm, [turn], pool([turn])) == reason


@pytest.mark.parametrize(
    ("arm", "axes", "turn", "reason"),
    [
        ("no-cache", ["chunked_prefill_size"], make_reached(chunk=10), ONE_CHUNK),
        ("no-cache", ["chunked_prefill_size"], make_reached(chunk=9), None),
        ("radix", ["eviction_policy"], make_reached(), NO_EVICTION),
        ("radix", ["eviction_policy"], make_reached(evictions=1), None),
        ("radix", ["page_size"], make_reached(), NO_HIT),
        ("no-cache", ["page_size"], make_reached(), None),
        ("radix", ["page_size", "parallel"], make_reached(), None),
        (
            "radix",
            ["page_size", "chunked_prefill_size"],
            make_reached(),
            f"{NO_HIT}, {ONE_CHUNK}",
        ),
    ],
)
def test_axes_are_idle_where_none_of_them_was_reached(
    arm: str, axes: list[str], turn: MeasuredTurn, reason: str | None
) -> None:
    """One that was reached is enough."""
    mine = [turn], pool([turn])
    plain = make_reached()

    assert why_axes_idle(arm, axes, mine, ([plain], pool([plain]))) == reason
