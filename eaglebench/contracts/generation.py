"""What a backend is asked to generate."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "context", "capacity", "aborted", "failed"]
"""Why a request ended.

stop: an end token or a stop string; length: `max_new_tokens` (or the end of a replay); context:
the context limit; capacity: the KV pool is full and nobody else is left to preempt; aborted: by
the caller; failed: refused, `error` says why.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One prompt to complete greedily.

    Attributes:
        request_id: unique among the requests of one `generate` call.
        prompt_token_ids: the prompt; every arm is fed exactly these.
        max_new_tokens: most tokens to generate, at least 1.
        stop_token_ids: end tokens; empty when they are to be ignored.
        stop_strings: texts that end the output; the token that completes one is kept.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_new_tokens: int
    stop_token_ids: tuple[int, ...] = ()
    stop_strings: tuple[str, ...] = ()
