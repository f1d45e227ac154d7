"""Lengths and states of one request."""

import pytest

from eaglebench.engine.request import EngineRequest, RequestState
from eaglebench.errors import InvariantError
from tests.engines import make_request, make_rule


def make_waiting(length: int = 10) -> EngineRequest:
    """A request that has not been admitted."""
    request = make_request("r", tuple(range(length)))
    return EngineRequest(request, arrival=0, rule=make_rule(request), replay=None, added_s=1.0)


def test_a_fresh_prompt_may_hit_all_but_its_last_token() -> None:
    """Ten tokens: prefill ends at 10, nine slots may come from the tree."""
    request = make_waiting(10)

    assert (request.prefill_end, request.hit_cap) == (10, 9)
    assert request.is_prefilling
    assert not request.has_sampled


def test_a_resume_computes_the_slot_before_the_pending_root_again() -> None:
    """Ten and four tokens: the root is token 13, slot 12 is written for its feature, 12 may hit."""
    request = make_waiting(10)
    request.append([1, 2, 3, 4])

    assert request.num_known == 14
    assert (request.prefill_end, request.hit_cap) == (13, 12)


def test_tokens_survive_the_growth_of_their_array() -> None:
    """Appended one by one far beyond the prompt's room, in order."""
    request = make_waiting(3)
    for token in range(100, 150):
        request.append([token])

    assert request.known_tokens.tolist() == [0, 1, 2, *range(100, 150)]
    assert request.output_ids == list(range(100, 150))


def test_a_failed_request_says_why_and_proposes_nothing() -> None:
    """Reason and error belong together."""
    request = make_waiting()
    request.fail("the head's numbers are NaN")

    observation = request.observe(3.0)

    assert (observation.finish_reason, observation.error) == (
        "failed",
        "the head's numbers are NaN",
    )
    assert observation.times.total_s == 2.0


@pytest.mark.parametrize("state", [RequestState.WAITING, RequestState.RUNNING])
def test_nobody_comes_back_from_the_end(state: RequestState) -> None:
    """A finished request stays finished."""
    request = make_waiting()
    request.move_to(RequestState.FINISHED)

    with pytest.raises(InvariantError, match="can't become"):
        request.move_to(state)
