"""The axes of a matrix, each declared once: its flag, its values, its knob, its part of a cell's name."""

from collections.abc import Callable

from eaglebench.plan.option import CACHE, ENGINE, SPECULATION, Axis, Need, Option
from eaglebench.records.knobs import (
    AUTO,
    EVICTION_POLICIES,
    LEAST,
    PREALLOCATIONS,
    WINDOW_OFF,
    EngineKnobs,
)

CHUNK_OFF = -1
"""How users write "no chunked prefill" (SGLang's spelling)."""
DRAFTS = Need("nothing is drafted", lambda run: run.drafts)
PREALLOCATES = Need(
    "no cell preallocates (--preallocation)",
    lambda run: any(cell.knobs.preallocation != "none" for cell in run.cells),
)


def where_unusual(knob: str, text: Callable[[EngineKnobs], str]) -> Callable[..., str | None]:
    """A part of a cell's name that stands there only where the knob is not as by default."""
    return lambda knobs: (
        None if getattr(knobs, knob) == getattr(EngineKnobs(), knob) else text(knobs)
    )


def _chunk(knobs: EngineKnobs) -> str:
    return (
        "chunkoff" if knobs.chunked_prefill_size is None else f"chunk{knobs.chunked_prefill_size}"
    )


def _window(knobs: EngineKnobs) -> str:
    return "windowoff" if knobs.sliding_window == WINDOW_OFF else f"window{knobs.sliding_window}"


AXES: dict[str, Axis] = {
    "page_size": Axis(
        option=Option(section=CACHE, unit="SLOTS", help="Slots a page.", aliases=("--block-size",)),
        least=LEAST["page_size"],
        knob="page_size",
        spell=lambda knobs: f"page{knobs.page_size}",
        place=0,
    ),
    "chunked_prefill_size": Axis(
        option=Option(
            section=CACHE,
            unit="TOKENS",
            help="Most prompt tokens a step; -1 is off.",
            default="-1",
            aliases=("--max-num-batched-tokens",),
        ),
        least=LEAST["chunked_prefill_size"],
        off=CHUNK_OFF,
        knob="chunked_prefill_size",
        to_knob=lambda value: None if value == CHUNK_OFF else value,
        spell=_chunk,
        place=1,
    ),
    "sliding_window": Axis(
        option=Option(
            section=CACHE,
            unit="TOKENS",
            help="What window layers see, the current token included; 0 is all.",
            default="the model's",
            aliases=("--swa",),
        ),
        least=LEAST["sliding_window"],
        knob="sliding_window",
        spell=where_unusual("sliding_window", _window),
        place=3,
    ),
    "eagle_topk": Axis(
        option=Option(
            section=SPECULATION,
            unit="BRANCHES",
            help="Branches a level; 1 is a chain.",
            aliases=("--speculative-eagle-topk", "--topk"),
            needs=(DRAFTS,),
        ),
        least=LEAST["eagle_topk"],
    ),
    "num_steps": Axis(
        option=Option(
            section=SPECULATION,
            unit="LEVELS",
            help="Levels of a draft.",
            aliases=("--speculative-num-steps", "--steps"),
        ),
        least=LEAST["num_steps"],
    ),
    "num_draft_tokens": Axis(
        option=Option(
            section=SPECULATION,
            unit="TOKENS",
            help="Tokens verified together; counts the root.",
            default="auto: steps + 1 in a chain, 1 + steps x top-k in a tree",
            aliases=("--speculative-num-draft-tokens",),
            needs=(DRAFTS,),
        ),
        least=LEAST["num_draft_tokens"],
        words=(AUTO,),
        spell=lambda knobs: knobs.draft.name,
        place=2,
    ),
    "num_speculative_tokens": Axis(
        option=Option(
            section=SPECULATION,
            unit="TOKENS",
            help="vLLM's K: a chain of K, the root not counted.",
            aliases=("--num-spec-tokens",),
        ),
        least=0,
    ),
    "preallocation": Axis(
        option=Option(section=CACHE, unit="NAME", help="none, lookahead-blocks or covered."),
        words=PREALLOCATIONS,
        knob="preallocation",
    ),
    "preallocate_tokens": Axis(
        option=Option(section=CACHE, unit="TOKENS", help="What it aims at.", needs=(PREALLOCATES,)),
        least=LEAST["preallocate_tokens"],
        knob="preallocate_tokens",
        spell=where_unusual(
            "preallocation", lambda knobs: f"{knobs.preallocation}{knobs.preallocate_tokens}"
        ),
        place=5,
    ),
    "eviction_policy": Axis(
        option=Option(
            section=CACHE,
            unit="NAME",
            help="What goes first when room is short: lru, fifo or lfu.",
            aliases=("--radix-eviction-policy",),
        ),
        words=EVICTION_POLICIES,
        knob="eviction_policy",
        spell=where_unusual("eviction_policy", lambda knobs: knobs.eviction_policy),
        place=6,
    ),
    "parallel": Axis(
        option=Option(
            section=ENGINE,
            unit="REQUESTS",
            help="Most requests at a time; a list makes a matrix.",
            aliases=("--max-concurrency", "--batch-size"),
        ),
        least=LEAST["parallel"],
        knob="parallel",
        spell=where_unusual("parallel", lambda knobs: f"parallel{knobs.parallel}"),
        place=4,
    ),
}
"""By name, in the order in which a matrix goes through them, the first one slowest.

An axis is declared here, has a field in `EngineKnobs`, and is used by the engine: three files.
"""
