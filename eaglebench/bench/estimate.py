"""What a run would do, and about how long it would take, without loading a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eaglebench.plan.conversation import Conversation
from eaglebench.plan.matrix import Expansion
from eaglebench.plan.run_config import RunConfig

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
        prompts: prompts of one arm over all cells.
        new_tokens: most new tokens of all arms and cells.
        seconds: None where nothing is known about the model's speed.
    """

    prompts: int
    new_tokens: int
    seconds: float | None


def estimate(config: RunConfig, conversations: Iterable[Sequence[Conversation]]) -> Estimate:
    """Count prompts and tokens over the conversations of all cells."""
    prompts = new_tokens = 0
    for of_cell in conversations:
        turns = [turn for conversation in of_cell for turn in conversation.turns]
        prompts += len(turns)
        new_tokens += sum(turn.max_new_tokens or config.max_new_tokens for turn in turns)
    new_tokens *= len(config.arms)
    speed = ASSUMED_TOKENS_PER_S.get(config.model)
    return Estimate(
        prompts=prompts,
        new_tokens=new_tokens,
        seconds=None if speed is None else new_tokens / speed,
    )


def estimate_lines(config: RunConfig, expansion: Expansion, expected: Estimate | None) -> list[str]:
    """What to print."""
    lines = [f"suite {config.suite}, model {config.model}, arms {', '.join(config.arms)}"]
    lines += cell_lines(expansion)
    if expected is None:
        lines.append("time: unknown before the questions are fetched")
        return lines
    amount = f"{expected.prompts} prompts an arm, at most {expected.new_tokens} new tokens in all"
    if expected.seconds is None:
        return [*lines, f"time: unknown for this model ({amount})"]
    speed = ASSUMED_TOKENS_PER_S[config.model]
    how_long = spell_duration(expected.seconds)
    lines.append(f"time: at most about {how_long} ({amount}, at an assumed {speed:.0f} tokens/s)")
    return lines


def cell_lines(expansion: Expansion) -> list[str]:
    """One line a cell, then one a skipped cell with its reason."""
    lines = [f"{len(expansion.cells)} cell{'s' if len(expansion.cells) != 1 else ''}:"]
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
