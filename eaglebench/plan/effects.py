"""Whether each option that was given to `run` has an effect there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eaglebench.plan.cell import Cell
from eaglebench.plan.option import ALWAYS, Need, Notice, Sources, check_effects
from eaglebench.plan.options import all_options, parameter_of
from eaglebench.plan.run_config import RunConfig
from eaglebench.plan.suite import (
    LadderWorkload,
    PagedLadderWorkload,
    PageEdgesWorkload,
    Suite,
)
from eaglebench.records.knobs import EngineKnobs

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


STORED = Need("a run that is gone on with keeps its own options", lambda _: False)


def check_run(situation: RunSituation, sources: Sources, *, notice: Notice) -> None:
    """Hold the options of a run against what they need.

    Raises:
        UsageError: one that was typed is without effect.
    """
    values, neutral = {**situation.given, **dict(situation.config)}, _neutral()
    asked = {
        name: is_typed
        for name, is_typed in sources.items()
        if name not in neutral or values.get(name) != neutral[name]
    }
    first = {
        parameter_of(name, option): next(
            (need for need in option.needs if not need.is_met(situation)), ALWAYS
        )
        for name, option in all_options().items()
    }
    check_effects(first, asked, situation, notice=notice)


def check_resumed(sources: Sources, *, notice: Notice) -> None:
    """Refuse options beside `--resume` that the stored run has already.

    Raises:
        UsageError: one was typed.
    """
    stored = {
        parameter_of(name, option): STORED
        for name, option in all_options().items()
        if not option.at_resume
    }
    check_effects(stored, sources, None, notice=notice)


def _neutral() -> dict[str, Any]:
    """Values that ask for what happens anyway."""
    knobs = EngineKnobs()
    fields = {name: field.default for name, field in RunConfig.model_fields.items()}
    fulls = {name: (getattr(knobs, name),) for name in ("eagle_topk", "preallocate_tokens")}
    return fields | fulls
