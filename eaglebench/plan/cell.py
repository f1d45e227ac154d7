"""One point of the matrix, and why a point was left out."""

from dataclasses import dataclass, replace

from eaglebench.records.knobs import WINDOW_OFF, EngineKnobs, base_arm


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
    default = EngineKnobs()
    chunk = "off" if knobs.chunked_prefill_size is None else knobs.chunked_prefill_size
    parts = [
        f"page{knobs.page_size}",
        f"chunk{chunk}",
        knobs.draft.name,
    ]
    if knobs.sliding_window is not None:
        off = knobs.sliding_window == WINDOW_OFF
        parts.append("windowoff" if off else f"window{knobs.sliding_window}")
    if knobs.parallel != default.parallel:
        parts.append(f"parallel{knobs.parallel}")
    if knobs.preallocation != default.preallocation:
        parts.append(f"{knobs.preallocation}{knobs.preallocate_tokens}")
    return "-".join(parts)
