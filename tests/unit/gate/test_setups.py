"""Two setups: an exact word on these questions, an interval on others where there are enough."""

import pytest

from eaglebench.gate.setups import judge_setups
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.bootstrap import LengthInterval
from eaglebench.stats.difference import Side, make_difference
from eaglebench.stats.tau import Tau
from tests.turns import make_step, make_turn

TAU = Tau(target=9.0, draft=9.0)
GOOD = make_turn(make_step(10, (3, 4), (3, 4, 0), 2))
POOR = make_turn(make_step(10, (3, 4), (1, 0, 0), 0), make_step(11, (3, 4), (3, 0, 0), 1))


def verdict(
    mine: MeasuredTurn, other: MeasuredTurn, interval: tuple[float, float] | None, count: int
) -> tuple[str, str]:
    """Verdict and reason on one turn, as if there were so many questions."""
    here, there = (Side(turns=(turn,), blocks=()) for turn in (mine, other))
    difference = make_difference(here, there, "before", TAU)
    found = LengthInterval(0.0, *interval, 0.98) if interval else None
    finding = judge_setups("cell", "radix", difference, found, count)
    return finding.verdict, finding.reason


@pytest.mark.parametrize(
    ("interval", "count", "expected"),
    [
        (None, 12, "REGRESSED"),
        ((-0.5, -0.1), 80, "REGRESSED"),
        ((-0.5, 0.1), 80, "INCONCLUSIVE"),
        ((-0.5, -0.1), 29, "REGRESSED"),
    ],
)
def test_a_loss_is_called_where_it_is_sure(
    interval: tuple[float, float] | None, count: int, expected: str
) -> None:
    """On few questions of these alone; on many only if others would show it too."""
    found, reason = verdict(POOR, GOOD, interval, count)

    assert found == expected
    assert ("of others nothing is claimed" in reason) == (count < 30)
    assert ("on other prompts between" in reason) == (count >= 30)


def test_a_gain_and_no_change() -> None:
    """A better head is IMPROVED, the same one passes, and nothing in both is no comparison."""
    assert verdict(GOOD, POOR, None, 2)[0] == "IMPROVED"
    assert verdict(GOOD, GOOD, None, 2)[0] == "PASS"
    assert verdict(GOOD, GOOD, None, 0)[0] == "NOT_COMPARABLE"
