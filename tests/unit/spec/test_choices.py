"""Choices out of logits: which come first, ties included."""

import pytest
import torch

from eaglebench.spec.choices import rank_best


@pytest.mark.parametrize("num_values", [2, 5, 10_000])
def test_the_best_are_those_of_a_stable_sort(num_values: int) -> None:
    """Few values are ties everywhere, the cut included; many are none."""
    generator = torch.Generator().manual_seed(num_values)
    for _ in range(50):
        scores = torch.randint(num_values, (3, 12), generator=generator).double()

        best, columns = rank_best(scores, 4)

        wanted, order = torch.sort(scores, dim=-1, descending=True, stable=True)
        assert torch.equal(best, wanted[:, :5])
        assert torch.equal(columns, order[:, :4])
