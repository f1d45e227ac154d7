"""Stops and limits, also in the middle of an accepted run."""

from collections.abc import Sequence

import pytest

from eaglebench.engine.stopping import Cut, StopRule, cut

STOP = 99


def make_rule(
    *, stop_strings: tuple[str, ...] = (), max_output: int = 100, max_known: int = 1000
) -> StopRule:
    """A rule with one end token and letters as tokens."""

    def decode(ids: Sequence[int]) -> str:
        return "".join(chr(97 + token_id % 26) for token_id in ids)

    return StopRule(
        stop_token_ids=frozenset({STOP, 98}),
        stop_strings=stop_strings,
        max_output_tokens=max_output,
        max_known_tokens=max_known,
        decode=decode,
    )


@pytest.mark.parametrize(
    ("max_output", "expected"),
    [(5, Cut(3, "stop")), (2, Cut(2, "length")), (3, Cut(3, "stop")), (100, Cut(3, "stop"))],
)
def test_earlier_of_stop_and_limit_wins(max_output: int, expected: Cut) -> None:
    """A limit after a stop does not hide it, and both at once count as a stop (sglang#31599)."""
    rule = make_rule(max_output=max_output)

    assert expected == cut(rule, num_prompt_tokens=4, output_ids=(), new_ids=[1, 2, STOP, 4, 5, 6])


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("stop_id", [STOP, 98])
def test_end_token_inside_an_accepted_run_stops_there(place: int, stop_id: int) -> None:
    """Any of several end tokens stops at any place of the run (transformers#47912)."""
    run = [1, 2, 3, 4, 5]
    run[place] = stop_id

    assert Cut(place + 1, "stop") == cut(
        make_rule(), num_prompt_tokens=4, output_ids=[7], new_ids=run
    )


def test_context_limit_cuts_the_run() -> None:
    """Prompt and output together never exceed the context limit."""
    rule = make_rule(max_known=10)

    assert Cut(3, "context") == cut(rule, num_prompt_tokens=5, output_ids=[1, 2], new_ids=[3] * 6)


def test_stop_string_is_found_across_steps_and_tokens() -> None:
    """The token that completes the stop string is the last one kept (vllm#47616)."""
    rule = make_rule(stop_strings=("cab", "xy"))

    assert Cut(2, "stop") == cut(
        rule, num_prompt_tokens=1, output_ids=[2], new_ids=[0, 1, 3, 3, 3, 3]
    )


def test_nothing_to_stop_keeps_everything() -> None:
    """Without a stop or a limit in reach the run is kept whole."""
    assert Cut(3, None) == cut(make_rule(), num_prompt_tokens=1, output_ids=(), new_ids=[1, 2, 3])
