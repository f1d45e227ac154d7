"""What vLLM can be asked through its offline interface (tried with 0.32)."""

from eaglebench.backends.abilities import Abilities
from eaglebench.records.knobs import EngineKnobs

LEAST_BLOCK = 16
"""Blocks are multiples of it; a CPU takes multiples of 32 alone and says so itself."""
_OWN = "vLLM decides that itself"
_GREEDY = "vLLM draws other tokens in every arm, so that turns can't be paired"


def _obstacle(knobs: EngineKnobs) -> str | None:
    plain = EngineKnobs()
    if knobs.page_size % LEAST_BLOCK:
        return f"vLLM's blocks have a multiple of {LEAST_BLOCK} slots (32 on a CPU)"
    if knobs.eagle_topk > 1 or knobs.num_draft_tokens != knobs.num_steps + 1:
        return "vLLM drafts chains"
    for name in ("preallocation", "eviction_policy", "sliding_window"):
        if getattr(knobs, name) != getattr(plain, name):
            return f"{name.replace('_', ' ')}: {_OWN}"
    chunk = knobs.chunked_prefill_size
    least = knobs.parallel * (knobs.num_steps + 1)
    if chunk is not None and chunk < least:
        return f"vLLM's steps have room for the verified tokens of all requests, here {least}"
    return None


VLLM = Abilities(
    arms=("radix", "force-miss", "no-cache"),
    obstacle=_obstacle,
    refuses={
        "temperature": _GREEDY,
        "replay": "it takes no tokens from outside",
        "profile": "the profiler sees this process alone",
        "attention_backend": "give vLLM's own with --engine-arg attention_backend=...",
        "swa_full_tokens_ratio": _OWN,
        "aux_layer_ids": "it reads the head's config",
        "draft_config": "it reads the head's config",
        "stop": "it ends the text, not the token",
    },
    is_outside=True,
)
