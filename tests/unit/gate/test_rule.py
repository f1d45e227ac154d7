"""The rule behind every verdict on noisy numbers."""

import pytest

from eaglebench.gate.rule import decide


@pytest.mark.parametrize(
    ("change", "half_width", "verdict"),
    [
        (-0.011, 0.01, "REGRESSED"),
        (-0.009, 0.01, "PASS"),
        (0.03, 0.01, "IMPROVED"),
        (-0.5, 0.011, "REGRESSED"),  # a certain loss, however wide the interval
        (-0.1009, 0.0436, "REGRESSED"),
        (-0.05, 0.06, "INCONCLUSIVE"),
        (0.0, 0.011, "INCONCLUSIVE"),
        (0.5, 0.011, "INCONCLUSIVE"),
        (0.0, None, "INCONCLUSIVE"),
    ],
)
def test_the_rule_calls_certain_losses_and_else_decides_on_narrow_intervals(
    change: float, half_width: float | None, verdict: str
) -> None:
    """With two per cent allowed."""
    assert decide(change, half_width, 0.02) == verdict
