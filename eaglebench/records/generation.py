"""What a backend is asked to generate."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "context", "capacity", "aborted", "failed"]
"""Why a request ended.

stop: an end token or a stop string; length: `max_new_tokens` (or the end of a replay); context:
the context limit; capacity: the KV pool is full and nobody else is left to preempt; aborted: by
the caller; failed: refused, or a model gave NaN or infinite numbers; `error` says why.
"""

TOO_LONG_HINT = (
    "raise --max-total-tokens or --context-length; where window layers lack room, compute the "
    "prompt in chunks"
)
"""What to try where a prompt has no room."""

SamplingRule = Literal["target-only", "draft-distribution"]
SAMPLING_RULES: tuple[SamplingRule, ...] = ("target-only", "draft-distribution")
"""How drawn tokens and drafts are brought together.

target-only: drafts are the head's likeliest tokens, and one is accepted if the target draws it.
draft-distribution: drafts of a chain are drawn from the head's own distribution q and accepted with
min(1, p / q); vLLM's probabilistic drafts, SGLang's rejection sampling.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn; requests without it decode greedily.

    Attributes:
        temperature: above 0.
        top_p: smallest set of likeliest tokens with so much probability.
        top_k: so many likeliest tokens; 0 is all.
        coin_key: names seed, question and turn; the same key draws the same tokens.
        rule: which drafts are made and when one is accepted.
        threshold_single, threshold_acc: below 1 drafts are accepted too often, see
            `spec/thresholds.py`.
    """

    temperature: float
    coin_key: str
    top_p: float = 1.0
    top_k: int = 0
    rule: SamplingRule = "target-only"
    threshold_single: float = 1.0
    threshold_acc: float = 1.0

    @property
    def draws_drafts(self) -> bool:
        """Whether drafts are drawn as well."""
        return self.rule == "draft-distribution"

    @property
    def is_lossy(self) -> bool:
        """Whether what comes out does not follow the target's distribution."""
        return min(self.threshold_single, self.threshold_acc) < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One prompt to complete.

    Attributes:
        request_id: unique among the requests of one `generate` call.
        prompt_token_ids: the prompt; every arm is fed exactly these.
        max_new_tokens: most tokens to generate, at least 1.
        stop_token_ids: end tokens; empty when they are to be ignored.
        stop_strings: texts that end the output; the token that completes one is kept.
        sampling: how tokens are drawn; None is greedy.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_new_tokens: int
    stop_token_ids: tuple[int, ...] = ()
    stop_strings: tuple[str, ...] = ()
    sampling: Sampling | None = None
