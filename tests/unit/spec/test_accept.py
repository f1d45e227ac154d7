"""Greedy acceptance of a chain."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglebench.spec.accept import Acceptance, accept_chosen
from eaglebench.spec.proposal import Proposal, chain


def as_chain(token_ids: Sequence[int]) -> Proposal:
    """A chain whose gaps don't matter."""
    return chain(token_ids, [0.0] * len(token_ids))


def test_all_accepted_adds_the_bonus() -> None:
    """A chain the target agrees with is delivered whole, with one token more."""
    assert Acceptance((0, 1), (5, 6, 7)) == accept_chosen(as_chain((5, 6)), (5, 6, 7))


def test_first_mismatch_ends_the_run() -> None:
    """What follows a mismatch is not accepted even where it matches again."""
    assert Acceptance((0,), (5, 9)) == accept_chosen(as_chain((5, 6, 7)), (5, 9, 7, 8))


def test_plain_decoding_emits_one_token() -> None:
    """Without proposed tokens the target's own choice is all there is."""
    assert Acceptance((), (3,)) == accept_chosen(as_chain(()), (3,))


def test_lengths_must_belong_together() -> None:
    """One choice too few is a bug of the caller."""
    with pytest.raises(ValueError, match="need 3 target choices, got 2"):
        accept_chosen(as_chain((1, 2)), (1, 2))


@given(st.lists(st.integers(0, 2), max_size=6), st.data())
def test_emitted_is_what_plain_decoding_would_say(drafted: list[int], data: st.DataObject) -> None:
    """Accepted tokens are a common prefix, and the bonus is the target's choice right after it."""
    target = data.draw(
        st.lists(st.integers(0, 2), min_size=len(drafted) + 1, max_size=len(drafted) + 1)
    )

    got = accept_chosen(as_chain(drafted), target)

    assert drafted[: got.num_accepted] == target[: got.num_accepted]
    assert target[: got.num_accepted + 1] == list(got.emitted_ids)
    assert got.num_accepted == len(drafted) or drafted[got.num_accepted] != target[got.num_accepted]
