"""Choices out of logits: which come first, ties included."""

import pytest
import torch

from eaglebench.spec.likeliest import choose_greedy, rank_best


def assert_best(scores: torch.Tensor, count: int) -> None:
    """As a stable sort of whole rows has it."""
    best, columns = rank_best(scores, count)

    wanted, order = torch.sort(scores, dim=-1, descending=True, stable=True)
    assert torch.equal(best, wanted[:, : count + 1])
    assert torch.equal(columns, order[:, :count])


@pytest.mark.parametrize("count", [1, 4, 11])
@pytest.mark.parametrize("num_values", [1, 2, 5, 10_000])
def test_the_best_are_those_of_a_stable_sort(num_values: int, count: int) -> None:
    """Few values are ties everywhere, the cut included; many are none."""
    generator = torch.Generator().manual_seed(num_values)
    for _ in range(50):
        assert_best(torch.randint(num_values, (3, 12), generator=generator).double(), count)


def test_ties_of_bfloat16_logits_are_ranked_by_column() -> None:
    """Many rows of a large vocabulary tie at the cut there; some logits are impossible."""
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn((64, 16_384), generator=generator)).bfloat16()
    logits[:, ::7] = float("-inf")
    scores = torch.log_softmax(logits.float(), dim=-1)
    ranked = torch.sort(scores, dim=-1, descending=True).values

    assert int((ranked[:, 7] == ranked[:, 8]).sum()) > 8
    assert_best(scores, 8)
    assert_best(torch.full((2, 9), float("-inf")), 8)


def test_a_row_with_a_number_that_is_not_finite_has_no_gap() -> None:
    """NaN, infinity and minus infinity, also where they are not the choice; the others keep theirs."""
    nan, inf = float("nan"), float("inf")
    logits = torch.tensor(
        [[3.0, 1.0, 0.0], [3.0, nan, 0.0], [3.0, -inf, 0.0], [inf, 1.0, 0.0], [inf, inf, 0.0]]
    )

    gaps = choose_greedy(logits).gaps.tolist()

    assert gaps[0] == 2.0
    assert [str(gap) for gap in gaps[1:]] == ["nan"] * 4
