"""`d2t` and `t2d` read, told apart and held against each other; padded sizes."""

import pytest
import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.vocabulary import is_padding, target_id_table

DRAFT, VOCAB = 8, 32
KEPT = [0, 1, 2, 5, 9, 10, 20, 31]
"""Target ids of a usual table: neighbours are among them, so that offsets repeat."""


def read(d2t: Tensor | None, t2d: Tensor | None = None) -> tuple[list[int], str | None]:
    """Target ids and the warning."""
    table, warning = target_id_table(d2t, t2d, draft_vocab_size=DRAFT, vocab_size=VOCAB)
    return table.tolist(), warning


def offsets(ids: list[int]) -> Tensor:
    """What `d2t` should hold."""
    return torch.tensor(ids) - torch.arange(DRAFT)


def marks(ids: list[int], size: int = VOCAB) -> Tensor:
    """What `t2d` should hold."""
    marked = torch.zeros(size, dtype=torch.bool)
    marked[ids] = True
    return marked


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.float16])
@pytest.mark.parametrize("has_marks", [True, False])
def test_offsets_of_any_whole_type(dtype: torch.dtype, *, has_marks: bool) -> None:
    """Read as they should be, without a word."""
    found = read(offsets(KEPT).to(dtype), marks(KEPT) if has_marks else None)

    assert found == (KEPT, None)


@pytest.mark.parametrize("ids", [KEPT, [4 * index for index in range(DRAFT)]])
def test_marks_tell_absolute_ids(ids: list[int]) -> None:
    """Also where the table would make sense as offsets; the warning says so."""
    found, warning = read(torch.tensor(ids), marks(ids))

    assert found == ids
    assert "absolute ids" in str(warning)


def test_range_tells_absolute_ids() -> None:
    """Without marks, where offsets would leave the vocabulary."""
    found, warning = read(torch.tensor(KEPT))

    assert found == KEPT
    assert "absolute ids" in str(warning)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_table_that_could_be_both_is_offsets(step: int) -> None:
    """With a warning: 0, 1, 2, ... is a default that projects leave behind."""
    found, warning = read(step * torch.arange(DRAFT))

    assert found == [(step + 1) * index for index in range(DRAFT)]
    assert "absolute ids, too" in str(warning)


@pytest.mark.parametrize("d2t", [torch.zeros(DRAFT, dtype=torch.int64), None])
def test_a_table_that_was_never_filled_is_refused(d2t: Tensor | None) -> None:
    """All zeros, or none: which ids the head proposes would be a guess, and a bad one."""
    with pytest.raises(CheckpointError, match=r"8 ids .*32"):
        read(d2t)


def test_first_ids_that_marks_confirm_are_mentioned() -> None:
    """They can be meant, though they are hardly the most frequent."""
    found, warning = read(torch.zeros(DRAFT, dtype=torch.int64), marks(list(range(DRAFT))))

    assert found == list(range(DRAFT))
    assert "first 8 ids of 32" in str(warning)


@pytest.mark.parametrize("size", [30, 40])
def test_marks_of_another_padding_count_as_well(size: int) -> None:
    """As long as they mark the same ids."""
    ids = [0, 1, 2, 3, 7, 8, 9, 29]

    assert read(offsets(ids), marks(ids, size)) == (ids, None)


@pytest.mark.parametrize(
    ("d2t", "t2d", "message"),
    [
        (offsets(KEPT) - 9, None, "draft id 0 to -9, outside the target's vocabulary of 32"),
        (offsets(KEPT) + 1, None, "draft id 7 to 32"),
        (offsets([0, 1, 1, 3, 4, 5, 6, 7]), None, "two draft ids to one target id"),
        (offsets(KEPT) + 0.5, None, "fractions"),
        (torch.full((DRAFT,), float("nan")), None, "fractions"),
        (offsets(KEPT)[1:], None, r"shape \(7,\); expected \(8,\)"),
        (offsets(KEPT), marks([*KEPT, 3]), "t2d marks 9 target ids of 32, d2t names 8"),
        (torch.arange(DRAFT), marks(KEPT), "tables don't agree"),
        (torch.zeros(DRAFT), marks(KEPT), "tables don't agree"),
        (offsets(KEPT), marks(KEPT)[None], r"t2d has shape \(1, 32\)"),
        (None, marks(KEPT), "a t2d and no d2t"),
    ],
)
def test_tables_that_make_no_sense(d2t: Tensor | None, t2d: Tensor | None, message: str) -> None:
    """The first bad id, or what does not agree, is named."""
    with pytest.raises(CheckpointError, match=message):
        read(d2t, t2d)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (256, 256, True),
        (250, 256, True),
        (264, 256, True),
        (151643, 151936, True),
        (151936, 152064, True),
        (32000, 32064, True),
        (32000, 128256, False),
        (128256, 129280, False),
        (64, 256, False),
    ],
)
def test_paddings_are_told_from_other_vocabularies(one: int, other: int, *, expected: bool) -> None:
    """By less than 512 ids, and not by more than an eighth."""
    assert is_padding(one, other) == is_padding(other, one) == expected
