"""What an engine can be asked; what it can't is refused, or its cell skipped, before anything loads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eaglebench.records.knobs import ARMS, EngineKnobs

Obstacle = Callable[[EngineKnobs], str | None]
"""Why an engine can't run a cell; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """One engine's.

    Attributes:
        arms: those it has; faults are planted in the embedded engine alone.
        obstacle: asked for every cell.
        refuses: options that it has not, or that mean something else there, and why.
        is_outside: whether it runs under a python of its own.
    """

    arms: tuple[str, ...] = ARMS
    obstacle: Obstacle = lambda _knobs: None
    refuses: Mapping[str, str] = field(default_factory=dict)
    is_outside: bool = False
