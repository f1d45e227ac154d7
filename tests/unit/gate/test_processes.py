"""Two versions of the code over pairs of processes."""

import pytest

from eaglebench.gate.times import judge_processes

KEY = ("page1", "radix")


@pytest.mark.parametrize(
    ("shift", "spread", "count", "verdict"),
    [
        (0.0, 0.002, 8, "PASS"),
        (-0.05, 0.002, 8, "REGRESSED"),
        (0.05, 0.002, 8, "IMPROVED"),
        (-0.05, 0.1, 8, "INCONCLUSIVE"),
        (-0.05, 0.002, 5, "INCONCLUSIVE"),
        (0.0, 0.0, 0, "NOT_COMPARABLE"),
    ],
)
def test_pairs_of_processes_decide(shift: float, spread: float, count: int, verdict: str) -> None:
    """Five per cent of two allowed; noise and too few pairs are said to be that."""
    values = [shift + spread * (-1) ** n for n in range(count)]

    (finding,) = judge_processes({KEY: values}, 0.02, 0.01)

    assert finding.verdict == verdict, finding.reason


def test_all_cells_together_are_one_more_finding() -> None:
    """The geometric mean over cells has the best power."""
    findings = judge_processes({KEY: [0.0] * 8, ("page16", "radix"): [-0.08] * 8}, 0.02, 0.01)

    assert [finding.verdict for finding in findings] == ["PASS", "REGRESSED", "REGRESSED"]
    assert findings[-1].cell_id == "all cells"
    assert findings[-1].change == pytest.approx(-0.0392, abs=1e-4)
