"""Which engines there are, what each can, and whether one comes up and drafts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eaglebench.backends.abilities import Abilities
from eaglebench.backends.registry import ENGINES, open_runtime
from eaglebench.bench.measure import model_choice
from eaglebench.bench.prepare import prepare
from eaglebench.bench.session import WARMUP_TEXT
from eaglebench.plan.option import Notice, Sources
from eaglebench.records.counters import Counters
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.models import RuntimeInfo
from eaglebench.records.observation import RequestObservation

PROMPTS = (
    WARMUP_TEXT,
    "Count slowly from one to twenty, and then name the months of the year.",
)
"""The second one begins as the first one does, so that a prefix cache has something to find."""
CHECK_TOKENS = 24
_SUITE = "mtbench"
"""Whose defaults hold where nothing is said; its questions are not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCheck:
    """An engine that came up.

    Attributes:
        info: who it says it is, and what it loaded.
        answers: of two prompts, the second of which begins as the first one does.
        untold: counters that it does not tell.
    """

    info: RuntimeInfo
    answers: tuple[RequestObservation, ...]
    untold: tuple[str, ...]


def engines() -> dict[str, Abilities]:
    """What each of them can, by name."""
    return {name: engine.abilities for name, engine in ENGINES.items()}


def check_engine_answers(
    given: Mapping[str, Any], *, output_dir: str, sources: Sources, notice: Notice
) -> EngineCheck:
    """Start an engine in the first cell and arm that were asked for, and run two prompts.

    Args:
        given: options of `run`.
        output_dir: where runs would go; nothing is written.
        sources: which options came from the user.
        notice: is told what is loaded.

    Raises:
        UsageError: it can't be had, or has not what was asked for.
        EngineError: it did not come up, or died.
    """
    setup = prepare(
        _SUITE,
        {**given, "dry_run": True},
        resume=None,
        output_dir=output_dir,
        sources=sources,
        notice=notice,
    )
    cell, arm = setup.expansion.cells[0], setup.config.arms[0]
    choice = model_choice(setup.config, needs_draft=bool(cell.knobs.num_steps), notice=notice)
    runtime = open_runtime(choice)
    try:
        backend = runtime.backend(cell.for_arm(arm))
        requests = [
            GenerationRequest(
                request_id=f"check/{number}",
                prompt_token_ids=tuple(runtime.tokenizer.encode(text)),
                max_new_tokens=CHECK_TOKENS,
            )
            for number, text in enumerate(PROMPTS)
        ]
        # one after the other, so that the second one finds what the first one left
        answers = tuple(seen for request in requests for seen in backend.generate([request]))
        backend.close()
    finally:
        runtime.close()
    untold = {n for each in answers for n in Counters.names() if getattr(each.counters, n) is None}
    names = tuple(name for name in Counters.names() if name in untold)
    return EngineCheck(info=runtime.info, answers=answers, untold=names)
