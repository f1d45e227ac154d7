"""What each option of `run` needs to have an effect, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eaglebench.cli.effects import ALWAYS, Need, Sources, check_effects
from eaglebench.cli.effects import HAS_RANGE as PASSES
from eaglebench.plan.cell import Cell
from eaglebench.plan.run_config import RunConfig
from eaglebench.plan.suite import (
    LadderWorkload,
    PagedLadderWorkload,
    PageEdgesWorkload,
    Suite,
)
from eaglebench.records.knobs import BASELINE_ARM, EngineKnobs

_OWN_PROMPTS = (LadderWorkload, PagedLadderWorkload, PageEdgesWorkload)
"""Workloads that fix their prompts and the lengths of their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSituation:
    """A run as it was put together: what was given, and what came of it."""

    given: Mapping[str, Any]
    config: RunConfig
    suite: Suite
    cells: tuple[Cell, ...]

    @property
    def drafts(self) -> bool:
        """Whether anything is proposed in any cell."""
        return any(cell.knobs.num_steps for cell in self.cells)

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn."""
        return self.config.temperature > 0

    @property
    def asks_texts(self) -> bool:
        """Whether prompts are made of the questions as a conversation, or of each as it stands."""
        return not isinstance(self.suite.workload, _OWN_PROMPTS)


DRAFTS = Need("nothing is drafted", lambda run: run.drafts)
DRAWS = Need("temperature 0 takes the likeliest token", lambda run: run.draws)
DRAWS_DRAFTS = Need(
    "it decides over drafts where tokens are drawn, and temperature is 0 or nothing is drafted",
    lambda run: run.draws and run.drafts,
)
PREALLOCATES = Need(
    "no cell preallocates (--preallocation)",
    lambda run: any(cell.knobs.preallocation != "none" for cell in run.cells),
)
ASKS_TEXTS = Need("the suite fixes its prompts", lambda run: run.asks_texts)
SETS_LENGTHS = Need("the suite fixes how long its answers are", lambda run: run.asks_texts)
HAS_FILE = Need("it belongs to --question-file", lambda run: run.config.question_file is not None)
HAS_RANGE = Need(
    PASSES.why_not,
    lambda run: run.config.pair_range.least < run.config.pair_range.most,
)
HAS_BASELINE_ARM = Need(
    f"{BASELINE_ARM} is not among the arms",
    lambda run: (
        BASELINE_ARM in run.given.get("arms", run.suite.defaults.get("arms", (BASELINE_ARM,)))
    ),
)
FREE_ANSWERS = Need(
    "--replay ends every answer where the stored one ends",
    lambda run: run.config.replay is None,
    is_fatal=False,
)

NEEDS: dict[str, tuple[Need, ...]] = {
    **dict.fromkeys(
        (
            *("model", "dtype", "device", "attention_backend", "num_threads", "trust_remote_code"),
            *("algorithm", "num_steps", "num_speculative_tokens"),
            *("page_size", "chunked_prefill_size", "sliding_window", "preallocation"),
            *("arms", "disable_radix_cache", "num_questions", "question_file", "ignore_eos"),
            *("stop", "temperature", "parallel", "max_total_tokens", "swa_full_tokens_ratio"),
            *("context_length", "seed", "warmup", "replay", "matrix", "dry_run", "resume"),
            *("continue_on_error", "profile", "pairs", "output_dir", "experiment_name", "label"),
            *("disable_tqdm", "format"),
        ),
        (ALWAYS,),
    ),
    **dict.fromkeys(
        ("draft_model", "draft_config", "aux_layer_ids", "eagle_topk", "num_draft_tokens"),
        (DRAFTS,),
    ),
    **dict.fromkeys(("top_p", "sampling_top_k"), (DRAWS,)),
    **dict.fromkeys(
        (
            *("sampling_rule", "use_rejection_sampling"),
            *("accept_threshold_single", "accept_threshold_acc"),
        ),
        (DRAWS_DRAFTS,),
    ),
    "preallocate_tokens": (PREALLOCATES,),
    "no_baseline_arm": (HAS_BASELINE_ARM,),
    "question_field": (HAS_FILE,),
    "max_new_tokens": (SETS_LENGTHS, FREE_ANSWERS),
    "system_prompt": (ASKS_TEXTS,),
    "prompt_format": (ASKS_TEXTS,),
    "precision": (HAS_RANGE,),
    "progress": (
        Need("--disable-tqdm takes its place", lambda run: not run.given.get("disable_tqdm")),
    ),
}
"""By option; one that needs two things is told the first that is missing."""

AT_RESUME = ("output_dir", "progress", "disable_tqdm", "format", "dry_run", "resume")
"""What can be given beside `--resume` alone: the rest is as it was when the run began."""
STORED = Need("a run that is gone on with keeps its own options", lambda _: False)

_NEUTRAL: dict[str, Any] = {
    **{name: field.default for name, field in RunConfig.model_fields.items()},
    "eagle_topk": (EngineKnobs().eagle_topk,),
    "preallocate_tokens": (EngineKnobs().preallocate_tokens,),
}
"""Values that ask for what happens anyway."""


def check_run(situation: RunSituation, sources: Sources) -> None:
    """Hold the options of a run against what they need.

    Raises:
        UsageError: one that was typed is without effect.
    """
    values = {**situation.given, **dict(situation.config)}
    asked = {
        name: is_typed
        for name, is_typed in sources.items()
        if name not in _NEUTRAL or values.get(name) != _NEUTRAL[name]
    }
    first = {
        name: next((need for need in needs if not need.is_met(situation)), ALWAYS)
        for name, needs in NEEDS.items()
    }
    check_effects(first, asked, situation)


def check_resumed(sources: Sources) -> None:
    """Refuse options beside `--resume` that the stored run has already.

    Raises:
        UsageError: one was typed.
    """
    check_effects({name: STORED for name in NEEDS if name not in AT_RESUME}, sources, None)
