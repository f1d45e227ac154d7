"""What a run would do, and about how long it would take, without loading a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eaglebench.plan.conversation import Conversation
from eaglebench.plan.matrix import Expansion
from eaglebench.plan.passes import PassRange
from eaglebench.plan.run_config import RunConfig
from eaglebench.records.words import counted

ASSUMED_TOKENS_PER_S = {"smollm2-135m": 20.0, "tiny": 300.0}
"""New tokens a second on two CPU cores; a guess to plan a coffee by, never recorded."""


class ByteTokenizer:
    """Stands in for the model's tokenizer where only the number of prompts matters."""

    def encode(self, text: str) -> list[int]:
        """One id a byte."""
        return list(text.encode())

    def encode_prompt(self, text: str) -> list[int]:
        """The same: nothing belongs around a text."""
        return self.encode(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The bytes as text."""
        return bytes(token_ids).decode(errors="replace")

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The contents one after another."""
        return self.encode("".join(message["content"] for message in messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How much a run asks for, at most.

    Attributes:
        prompts: prompts of one arm over all cells in one pass.
        new_tokens: most new tokens of all arms and cells in one pass.
        passes: fewest and most passes.
        tokens_per_s: assumed of the model; None where nothing is known about its speed.
    """

    prompts: int
    new_tokens: int
    passes: PassRange
    tokens_per_s: float | None

    @property
    def seconds(self) -> tuple[float, float] | None:
        """How long the fewest and the most passes take at most; None where that is unknown."""
        if self.tokens_per_s is None:
            return None
        once = self.new_tokens / self.tokens_per_s
        return once * self.passes.least, once * self.passes.most


def estimate(config: RunConfig, conversations: Iterable[Sequence[Conversation]]) -> Estimate:
    """Count prompts and tokens over the conversations of all cells."""
    prompts = new_tokens = 0
    for of_cell in conversations:
        turns = [turn for conversation in of_cell for turn in conversation.turns]
        prompts += len(turns)
        new_tokens += sum(turn.max_new_tokens or config.max_new_tokens for turn in turns)
    new_tokens *= len(config.arms)
    return Estimate(
        prompts=prompts,
        new_tokens=new_tokens,
        passes=config.pass_range,
        tokens_per_s=ASSUMED_TOKENS_PER_S.get(config.model),
    )


def estimate_lines(config: RunConfig, expansion: Expansion, expected: Estimate | None) -> list[str]:
    """What to print."""
    lines = [f"suite {config.suite}, model {config.model}, arms {', '.join(config.arms)}"]
    lines += cell_lines(expansion)
    if expected is None:
        lines.append("time: unknown before the questions are fetched")
        return lines
    is_repeated = expected.passes.most > 1
    if is_repeated:
        lines.append(f"passes: {_spell_passes(expected.passes)}")
    amount = f"{counted(expected.prompts, 'prompt')} an arm, at most {counted(expected.new_tokens, 'new token')} "
    amount += "a pass" if is_repeated else "in all"
    if expected.seconds is None:
        return [*lines, f"time: unknown for this model ({amount})"]
    how_long = " to ".join(dict.fromkeys(spell_duration(each) for each in expected.seconds))
    speed = f"an assumed {expected.tokens_per_s:.0f} tokens/s"
    return [*lines, f"time: at most about {how_long} ({amount}, at {speed})"]


def estimate_document(
    config: RunConfig, expansion: Expansion, expected: Estimate | None
) -> dict[str, object]:
    """The same for other programs; None is what is not known."""
    known = None
    if expected is not None:
        seconds = expected.seconds
        known = {
            "prompts_an_arm": expected.prompts,
            "most_new_tokens": expected.new_tokens,
            "seconds_least": seconds and seconds[0],
            "seconds_most": seconds and seconds[1],
        }
    return {
        "suite": config.suite,
        "model": config.model,
        "draft_model": config.draft_model,
        "arms": list(config.arms),
        "passes": {"least": config.pass_range.least, "most": config.pass_range.most},
        "cells": [cell.cell_id for cell in expansion.cells],
        "skipped": {cell.cell_id: cell.reason for cell in expansion.skipped},
        "expected": known,
    }


def _spell_passes(passes: PassRange) -> str:
    if passes.least == passes.most:
        return f"{passes.most}"
    return f"{passes.least} to {passes.most}, until the times are precise enough"


def cell_lines(expansion: Expansion) -> list[str]:
    """One line a cell, then one a skipped cell with its reason."""
    lines = [f"{counted(len(expansion.cells), 'cell')}:"]
    lines += [f"  {cell.cell_id}" for cell in expansion.cells]
    if expansion.skipped:
        lines.append(f"skipped {len(expansion.skipped)}:")
        lines += [f"  {cell.cell_id}: {cell.reason}" for cell in expansion.skipped]
    return lines


def spell_duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
