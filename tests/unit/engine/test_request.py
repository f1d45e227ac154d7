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
    assert request.has_failed
    assert observation.times.total_s == 2.0


@pytest.mark.parametrize("state", [RequestState.WAITING, RequestState.RUNNING])
def test_nobody_comes_back_from_the_end(state: RequestState) -> None:
    """A finished request stays finished."""
    request = make_waiting()
    request.move_to(RequestState.FINISHED)

    with pytest.raises(InvariantError, match="can't become"):
        request.move_to(state)


def test_a_request_without_pages_or_end_has_none_to_show() -> None:
    """Asking is a bug of the engine, told by the request's name."""
    request = make_waiting()

    with pytest.raises(InvariantError, match="request r is not running and holds no pages"):
        _ = request.held
    with pytest.raises(InvariantError, match="request r has not ended"):
        request.observe(2.0)


def test_a_broken_step_goes_back_to_where_it_began() -> None:
    """A running request forgets what the step delivered and waits again, as if preempted."""
    request = make_waiting(10)
    request.move_to(RequestState.RUNNING)
    request.append([1])
    request.tally.prefill_sampled = 1
    request.mark()
    request.append([2, 3])
    request.num_written = request.draft_valid_len = 12
    request.recover()

    assert request.output_ids == [1]
    assert (request.state, request.tally.preemptions) == (RequestState.WAITING, 1)
    assert (request.num_written, request.draft_valid_len, request.table) == (0, 0, None)
    assert request.tally.prefill_sampled == 1


def test_who_waited_in_a_broken_step_was_not_preempted() -> None:
    """And who had ended in it stays so, with all that was delivered."""
    waiting, ended = make_waiting(), make_waiting()
    ended.move_to(RequestState.RUNNING)
    ended.append([1, 2])
    ended.finish_reason = "length"
    for request in (waiting, ended):
        request.recover()

    assert (waiting.state, waiting.tally.preemptions) == (RequestState.WAITING, 0)
    assert (ended.state, ended.output_ids) == (RequestState.FINISHED, [1, 2])


def test_times_are_those_of_the_first_admission() -> None:
    """Added at 1, admitted at 2, prompt complete at 4, ended at 7; a resume changes nothing."""
    request = make_waiting()
    for admitted, prefilled in ((2.0, 4.0), (5.0, 6.0)):
        request.note_admitted(admitted)
        request.note_prefilled(prefilled)
    request.finish_reason = "length"
    times = request.observe(7.0).times

    assert (times.queue_s, times.prefill_s, times.decode_s, times.total_s) == (1.0, 2.0, 3.0, 6.0)
