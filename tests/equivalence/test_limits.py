"""Stops and limits in the engine: context, pool, output, end tokens, stop strings."""

import pytest

from eaglebench.errors import UsageError
from tests.engines import (
    byte_text,
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    run_all,
    tiny_models,
)
from tests.prompts import question_prompts
from tests.slow_oracle import greedy_decode


def make_prompt(length: int) -> tuple[int, ...]:
    """An in-distribution prompt of exactly `length` tokens."""
    joined = [token for prompt in question_prompts() for token in prompt] * 8
    return tuple(joined[:length])


@pytest.mark.parametrize("place", range(5))
def test_end_token_stops_where_plain_decoding_stops(place: int) -> None:
    """Declaring the n-th generated token an end token gives the oracle's output (transformers#47912)."""
    plain = make_request("plain", question_prompts()[0], max_new_tokens=12)
    tokens, _ = greedy_decode(tiny_models(), plain.prompt_token_ids, make_rule(plain))
    request = make_request(
        "stop", question_prompts()[0], max_new_tokens=12, stop_token_ids=(tokens[place], 999)
    )

    got = run_all(make_engine(make_knobs(steps=4)), [request])["stop"]

    expected, reason = greedy_decode(tiny_models(), request.prompt_token_ids, make_rule(request))
    assert (tuple(expected), reason) == (got.output_token_ids, got.finish_reason)
    assert got.finish_reason == "stop"


def test_nothing_after_an_end_token_enters_the_tree() -> None:
    """The tree holds no more slots than tokens delivered before the stop (O3)."""
    plain = make_request("plain", question_prompts()[0], max_new_tokens=12)
    tokens, _ = greedy_decode(tiny_models(), plain.prompt_token_ids, make_rule(plain))
    request = make_request(
        "stop", question_prompts()[0], max_new_tokens=12, stop_token_ids=(tokens[6],)
    )
    engine = make_engine(make_knobs(steps=5))

    got = run_all(engine, [request])["stop"]

    known = len(request.prompt_token_ids) + len(got.output_token_ids)
    assert known - 1 == engine.storage.cache.num_evictable_pages


def test_stop_string_cuts_ids_counts_and_text_together() -> None:
    """One truncated id list is the source of all counters (vllm#47616)."""
    plain = make_request("plain", question_prompts()[0], max_new_tokens=20)
    tokens, _ = greedy_decode(tiny_models(), plain.prompt_token_ids, make_rule(plain))
    stop = byte_text(tokens)[5:8]
    request = make_request("s", question_prompts()[0], max_new_tokens=20, stop_strings=(stop,))

    got = run_all(make_engine(make_knobs(steps=5)), [request])["s"]

    expected, _ = greedy_decode(tiny_models(), request.prompt_token_ids, make_rule(request))
    assert tuple(expected) == got.output_token_ids
    assert got.counters.output_tokens == len(got.output_token_ids)
    assert got.counters.output_tokens == (got.counters.prefill_sampled or 0) + (
        got.counters.emitted or 0
    )
    assert byte_text(got.output_token_ids).endswith(stop)


@pytest.mark.parametrize(
    ("length", "max_new", "expected", "reason"),
    [(60, 4, 4, "length"), (60, 9, 4, "context"), (63, 1, 1, "length"), (63, 5, 1, "context")],
)
@pytest.mark.parametrize("page_size", [1, 5, 16])
def test_context_limit_is_exact(
    length: int, max_new: int, expected: int, reason: str, page_size: int
) -> None:
    """At most ctx tokens; drafts are clipped to what is left (lorax#474, vllm#30306)."""
    engine = make_engine(make_knobs(steps=5, page_size=page_size), context_length=64)

    got = run_all(engine, [make_request("r", make_prompt(length), max_new_tokens=max_new)])["r"]

    assert (expected, reason) == (got.counters.output_tokens, got.finish_reason)


@pytest.mark.parametrize("length", [64, 65])
def test_prompt_that_fills_the_context_is_refused(length: int) -> None:
    """Both numbers are named."""
    engine = make_engine(make_knobs(steps=5), context_length=64)

    with pytest.raises(UsageError, match=f"prompt of {length} tokens .* 64"):
        engine.add(make_request("r", make_prompt(length)))


def test_prompt_larger_than_the_pool_fails_alone() -> None:
    """It is refused at once with numbers; small requests behind it complete (vllm#39734)."""
    engine = make_engine(make_knobs(steps=3, max_total_tokens=128, parallel=2))
    requests = [
        make_request("big", make_prompt(200)),
        make_request("a", make_prompt(30)),
        make_request("b", make_prompt(40)),
    ]

    got = run_all(engine, requests)

    assert got["big"].finish_reason == "failed"
    assert "200" in str(got["big"].error)
    assert "128" in str(got["big"].error)
    assert {n: got[n].finish_reason for n in ("a", "b")} == {"a": "length", "b": "length"}


def test_decode_wall_ends_with_a_reason_and_others_complete() -> None:
    """A prompt that fits and an answer that doesn't: `capacity`, then the queue goes on."""
    engine = make_engine(make_knobs(steps=3, max_total_tokens=128, parallel=2))
    requests = [
        make_request("wall", make_prompt(110), max_new_tokens=100),
        make_request("a", make_prompt(30)),
        make_request("b", make_prompt(40)),
    ]

    got = run_all(engine, requests)

    assert got["wall"].finish_reason == "capacity"
    expected, _ = greedy_decode(tiny_models(), requests[0].prompt_token_ids, make_rule(requests[0]))
    outputs = got["wall"].output_token_ids
    assert tuple(expected[: len(outputs)]) == outputs
    assert {n: got[n].finish_reason for n in ("a", "b")} == {"a": "length", "b": "length"}


def test_one_new_token_needs_no_draft() -> None:
    """max_new_tokens 1 is the prefill's own token: no verify step, no 0/0."""
    got = run_all(make_engine(), [make_request("r", make_prompt(20), max_new_tokens=1)])["r"]

    assert (
        got.counters.output_tokens,
        got.counters.verify_steps,
        got.counters.drafted,
    ) == (1, 0, 0)


@pytest.mark.parametrize("page_size", [1, 4])
def test_one_token_prompt_runs_cold_and_again(page_size: int) -> None:
    """A prompt of one token has no bigram and no hit, and still decodes like the oracle."""
    request = make_request("r", make_prompt(1), max_new_tokens=8)
    engine = make_engine(make_knobs(page_size=page_size))
    expected, _ = greedy_decode(tiny_models(), request.prompt_token_ids, make_rule(request))

    for _ in range(2):
        got = run_all(engine, [request])["r"]
        assert tuple(expected) == got.output_token_ids
        assert got.counters.cached_tokens == 0


def test_empty_prompt_is_refused() -> None:
    """No token, no request."""
    with pytest.raises(UsageError, match="empty prompt"):
        make_engine().add(make_request("r", ()))


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_preempted_requests_say_what_they_say_alone(page_size: int) -> None:
    """A pool too small for everybody preempts, resumes and changes nothing (O2, O6)."""
    prompts = [make_prompt(60)[:n] for n in (60, 50, 40, 33)]
    requests = [make_request(f"r{i}", p, max_new_tokens=40) for i, p in enumerate(prompts)]
    alone = run_all(make_engine(make_knobs("no-cache", page_size=page_size)), requests)
    knobs = {"page_size": page_size, "parallel": 4, "max_total_tokens": 192}

    for arm in ("radix", "no-cache", "force-miss"):
        got = run_all(make_engine(make_knobs(arm, **knobs)), requests)

        assert sum(o.counters.preemptions or 0 for o in got.values()) > 0, arm
        for name, expected in alone.items():
            assert expected.output_token_ids == got[name].output_token_ids, (arm, name)
            assert expected.accepted_per_step == got[name].accepted_per_step, (arm, name)


def test_replay_ends_where_the_stored_run_ended() -> None:
    """Stored tokens stand in for the target's choices, and overrun is cut."""
    stored = [5, 6, 7, 8, 9]
    request = make_request("r", make_prompt(20), max_new_tokens=50)

    got = run_all(make_engine(make_knobs(steps=4)), [request], replay={"r": stored})["r"]

    assert tuple(stored) == got.output_token_ids


def test_replay_of_own_output_changes_nothing() -> None:
    """Replaying a run gives the same steps."""
    request = make_request("r", question_prompts()[0], max_new_tokens=30)
    first = run_all(make_engine(), [request])["r"]

    again = run_all(make_engine(), [request], replay={"r": first.output_token_ids})["r"]

    assert first.accepted_per_step == again.accepted_per_step
