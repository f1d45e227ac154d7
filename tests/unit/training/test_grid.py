"""Decoding side by side gives the logits of decoding alone."""

import pytest
import torch

from eaglebench.engine.models import Models
from eaglebench.training.grid import DecodeGrid
from tests.engines import byte_ids, hybrid_models, tiny_models
from tests.unit.training.lessons import logits_behind

PREFIX = [256, *byte_ids("Say")]
TEXTS = ("again: plum", "twice: kiwi", "again: ruby")
STARTS = (0, 2, 5)
"""Steps after which each row begins, so that rows differ in length."""


@pytest.mark.parametrize("models", [tiny_models(), hybrid_models(5)], ids=["full", "window"])
def test_rows_that_began_at_different_times_see_only_themselves(models: Models) -> None:
    """Each row's logits after each token are those of its own text in a forward of its own."""
    target = models.target
    grid = DecodeGrid(target, len(TEXTS), 40, PREFIX)
    texts = [byte_ids(text) for text in TEXTS]
    fed = [0] * len(texts)
    compared = 0
    for row in range(len(texts)):
        grid.start(row)
    for step in range(len(texts[0])):
        running = [row for row, start in enumerate(STARTS) if step >= start]
        tokens = [texts[row][fed[row]] if row in running else 0 for row in range(len(texts))]
        positions = torch.tensor([len(PREFIX) + count for count in fed])
        logits = grid.feed(torch.tensor(tokens), positions, torch.tensor(running))
        for row, got in zip(running, logits, strict=True):
            fed[row] += 1
            expected = logits_behind(target, (*PREFIX, *texts[row][: fed[row]]))
            torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)
            compared += 1

    assert compared == 11 + 9 + 6


def test_a_row_begins_anew_without_its_past() -> None:
    """After `start` a row answers as if nothing had been in it."""
    target = tiny_models().target
    grid = DecodeGrid(target, 1, 40, PREFIX)
    for text in ("first", "again"):
        grid.start(0)
        for offset, token in enumerate(byte_ids(text)):
            position = torch.tensor([len(PREFIX) + offset])
            logits = grid.feed(torch.tensor([token]), position, torch.tensor([0]))

    expected = logits_behind(target, (*PREFIX, *byte_ids("again")))
    torch.testing.assert_close(logits[0], expected, atol=1e-10, rtol=0)
