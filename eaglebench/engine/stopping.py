"""Where a request ends: the first stop or limit met, token by token.

Tokens are looked at one after another, also inside an accepted run, so a stop that lies before a
limit wins, and a stop and a limit on the same token count as a stop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eaglebench.contracts.generation import FinishReason

Decode = Callable[[Sequence[int]], str]

# A character is at most four bytes and a token at least one byte of text; the slack covers tokens
# that decode to nothing (special tokens).
_TOKENS_PER_CHARACTER = 4
_SLACK_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """What ends one request.

    Attributes:
        stop_token_ids: end tokens.
        stop_strings: end texts.
        max_output_tokens: most tokens to deliver.
        max_known_tokens: context limit, prompt and output together.
        decode: token ids to text; only called when there are stop strings.
    """

    stop_token_ids: frozenset[int]
    stop_strings: tuple[str, ...]
    max_output_tokens: int
    max_known_tokens: int
    decode: Decode


@dataclass(frozen=True, slots=True)
class Cut:
    """How many of the new tokens are kept, and why the request ends there (None: it goes on)."""

    num_kept: int
    reason: FinishReason | None


def cut(
    rule: StopRule, *, num_prompt_tokens: int, output_ids: Sequence[int], new_ids: Sequence[int]
) -> Cut:
    """Look at `new_ids`, which would follow `output_ids`, one by one."""
    outputs = list(output_ids)
    for num_kept, token_id in enumerate(new_ids, start=1):
        outputs.append(token_id)
        if token_id in rule.stop_token_ids or _ends_with_stop_string(rule, outputs):
            return Cut(num_kept, "stop")
        if len(outputs) >= rule.max_output_tokens:
            return Cut(num_kept, "length")
        if num_prompt_tokens + len(outputs) >= rule.max_known_tokens:
            return Cut(num_kept, "context")
    return Cut(len(new_ids), None)


def _ends_with_stop_string(rule: StopRule, outputs: Sequence[int]) -> bool:
    """Whether a stop string is complete; earlier calls have looked at everything before."""
    if not rule.stop_strings:
        return False
    longest = max(map(len, rule.stop_strings))
    window = outputs[-(_TOKENS_PER_CHARACTER * longest + _SLACK_TOKENS) :]
    text = rule.decode(window)
    return any(stop in text for stop in rule.stop_strings)
