"""One point of the matrix, and why a point was left out."""

from dataclasses import dataclass, replace

from eaglebench.plan.axes import AXES
from eaglebench.records.knobs import EngineKnobs, base_arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting of the engine; every arm of a run is measured in it.

    `knobs.arm` is a placeholder: `for_arm` gives the knobs to run with.
    """

    cell_id: str
    knobs: EngineKnobs

    def for_arm(self, arm: str) -> EngineKnobs:
        """The knobs of this cell for one arm."""
        return replace(self.knobs, arm=base_arm(arm))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedCell:
    """A point of the matrix that makes no sense, and the reason."""

    cell_id: str
    reason: str


def cell_id(knobs: EngineKnobs) -> str:
    """A stable, readable name; settings that are seldom touched appear when they differ."""
    parts = [axis.spell(knobs) for axis in sorted(AXES.values(), key=lambda axis: axis.place)]
    return "-".join(part for part in parts if part)
