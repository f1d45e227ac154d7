"""Prompts the tiny pair knows how to answer, as token ids."""

import json
from functools import cache

from eaglebench.model.tokenizer import HubTokenizer
from tests.engines import TINY


@cache
def tiny_tokenizer() -> HubTokenizer:
    """The byte-level tokenizer of the tiny pair."""
    return HubTokenizer.load(TINY)


@cache
def question_prompts() -> tuple[tuple[int, ...], ...]:
    """First turns of the tiny suite's questions, in the chat template."""
    lines = (TINY / "prompts.jsonl").read_text().splitlines()
    turns = [json.loads(line)["turns"][0] for line in lines if line.strip()]
    render = tiny_tokenizer().render_chat
    return tuple(tuple(render([{"role": "user", "content": turn}])) for turn in turns)


def shared_prefix_prompts() -> tuple[tuple[int, ...], ...]:
    """Beginnings of questions, short for speed, with resends and branches off a common prefix."""
    questions = question_prompts()
    first, second, third = questions[3][:70], questions[9][:81], questions[0][:66]
    return (
        first,
        second,
        first,
        (*first[:40], *second[40:]),
        third,
        (*first, *second[:50]),
        first[:-1],
        first,
    )
