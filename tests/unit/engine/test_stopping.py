"""Stops and limits, also in the middle of an accepted run."""

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from eaglebench.engine.stopping import Cut, Decode, StopRule, StopWatch
from tests.prompts import tiny_tokenizer

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


def cut(
    rule: StopRule, *, num_prompt_tokens: int, output_ids: Sequence[int], new_ids: Sequence[int]
) -> Cut:
    """What a watch says to `new_ids` that has seen `output_ids`, token by token."""
    watch = StopWatch(rule, num_prompt_tokens)
    for token_id in output_ids:
        assert watch.cut([token_id]).reason is None
    return watch.cut(new_ids)


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


# --- stop strings against the slow version ----------------------------------------------------

FILLER = 256
"""A special token: no text at all."""
PIECES = {300: b"ab", 301: b"\xc3", 302: b"\xa9b", 303: " é".encode(), 304: b" a", 305: b"\xf0\x9f"}
"""Tokens of several bytes; some end or begin in the middle of a character."""
ALPHABET = [*b"ab c", 0xC3, 0xA9, FILLER, *PIECES]
STOPS = ["ab", "aab", "b a", "é", "éb", " ca", "\ufffd", "a\ufffda", "abcabcab"]


def text_of(token_ids: Sequence[int]) -> str:
    """Bytes joined and decoded; fillers left out, as decoding without special tokens does."""
    joined = b"".join(
        PIECES.get(token_id, bytes([token_id % 256]))
        for token_id in token_ids
        if token_id != FILLER
    )
    return joined.decode("utf-8", "replace")


def stripped_text_of(token_ids: Sequence[int]) -> str:
    """As `text_of`, but a space at the very beginning is lost, as with sentencepiece."""
    return text_of(token_ids).removeprefix(" ")


def slow_end(decode: Decode, stops: Sequence[str], token_ids: Sequence[int]) -> int | None:
    """Tokens up to the first after which all text so far holds a stop string."""
    for count in range(1, len(token_ids) + 1):
        text = decode(token_ids[:count])
        if any(stop in text for stop in stops):
            return count
    return None


def watched_end(decode: Decode, stops: Sequence[str], runs: Sequence[Sequence[int]]) -> int | None:
    """The same from a watch that sees the tokens in runs."""
    rule = StopRule(
        stop_token_ids=frozenset(),
        stop_strings=tuple(stops),
        max_output_tokens=10_000,
        max_known_tokens=10_000,
        decode=decode,
    )
    watch = StopWatch(rule, 1)
    seen = 0
    for run in runs:
        found = watch.cut(run)
        seen += found.num_kept
        if found.reason is not None:
            return seen
    return None


@settings(max_examples=400, deadline=None)
@given(
    runs=st.lists(st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=6), max_size=40),
    stops=st.lists(st.sampled_from(STOPS), min_size=1, max_size=3, unique=True),
    decode=st.sampled_from([text_of, stripped_text_of]),
)
@example(runs=[[*b"abcabcab"]], stops=["abcabcab"], decode=text_of)
@example(runs=[[32, 32, 99, 97]], stops=["ab", " ca"], decode=stripped_text_of)
def test_stop_strings_end_where_decoding_everything_ends(
    runs: list[list[int]], stops: list[str], decode: Decode
) -> None:
    """After every token all text is decoded and searched: the watch stops at the same token."""
    flat = [token_id for run in runs for token_id in run]

    assert watched_end(decode, stops, runs) == slow_end(decode, stops, flat)


@pytest.mark.parametrize("num_fillers", [0, 1, 40, 500])
@pytest.mark.parametrize("letters", [b"abcabcab", "sé!".encode()])
def test_any_number_of_tokens_without_text_may_stand_inside_a_stop_string(
    num_fillers: int, letters: bytes
) -> None:
    """Special tokens between all of its bytes, the two halves of a character included."""
    ids = list(b"so it is ")
    for letter in letters:
        ids += [letter, *[FILLER] * num_fillers]
    last_letter = len(ids) - num_fillers

    assert watched_end(text_of, [letters.decode()], [ids]) == last_letter


@pytest.mark.parametrize("token_id", [ord("a"), FILLER, 0xC3])
def test_a_long_answer_costs_no_more_than_its_end(token_id: int) -> None:
    """After 3,000 tokens a call decodes no more than a few lengths of the longest stop string."""
    longest = 0

    def counting(token_ids: Sequence[int]) -> str:
        nonlocal longest
        longest = max(longest, len(token_ids))
        return text_of(token_ids)

    assert watched_end(counting, ["abcabcab"], [[token_id] * 3000]) is None
    assert 1 <= longest <= 5 * len("abcabcab")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.sampled_from([*"aé b €".encode(), 0x20]), st.sampled_from([256, 257, 400])),
        max_size=80,
    )
)
def test_the_tokenizer_of_the_tiny_pair_ends_where_decoding_everything_ends(
    token_ids: list[int],
) -> None:
    """Bytes, halves of characters, special tokens, and an id without text."""
    decode = tiny_tokenizer().decode
    stops = ["a b", "é€", "\ufffda", "b  a"]

    assert watched_end(decode, stops, [token_ids] if token_ids else []) == slow_end(
        decode, stops, token_ids
    )
