"""Several chances at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglebench.stats.many_tests import holm

CHANCES = st.lists(st.floats(min_value=0, max_value=1), max_size=12)


@pytest.mark.parametrize(
    ("given_values", "expected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # Holm's own order of work
        ([0.5, 0.5, 0.9], [1.0, 1.0, 1.0]),
    ],
)
def test_known_corrections(given_values: list[float], expected: list[float]) -> None:
    """The values that R's `p.adjust(..., "holm")` and statsmodels give."""
    assert holm(given_values) == pytest.approx(expected)


@given(CHANCES)
def test_each_is_the_largest_of_those_before_it(values: list[float]) -> None:
    """The definition, worked out for each value anew: a maximum over all that are not larger."""
    ranked = sorted(values)
    expected = [
        min(1.0, max((len(ranked) - k) * p for k, p in enumerate(ranked) if p <= value))
        for value in values
    ]

    assert holm(values) == pytest.approx(expected)
