"""Near-ties: which choices noise can turn, and how many of a run's choices are that close.

Two arms that compute the same rows in other matrix shapes get logits that differ a little. A
parting is a near-tie if noise of that size could have turned this very choice: where one arm puts
its token ahead by a lead and the other arm puts the same token behind by another, the two logits
moved against each other by at least the sum, the *swing*. Runs from before that was measured are
judged by the smaller of the two leads, the *gap*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.models import NumericNoise
from eaglebench.records.observation import VerifyStep
from eaglebench.stats.acceptance import answered

Side = Literal["target", "draft"]
GAP_FACTOR = 10
"""A gap below ten times the noise of a logit is a near-tie, where swings are not known."""
SWING_FACTOR = 4
"""A swing below four times the noise of a lead is one (`docs/decisions/0004-near-ties.md`)."""
MANY_CLOSE = 0.05
"""In float32 one choice in a thousand is that close, in bfloat16 one in five."""


def thresholds(noise: NumericNoise) -> dict[str, float]:
    """What `run.json` records as `tau`, out of what a run measured."""
    leads = {"target_swing": noise.target_lead, "draft_swing": noise.draft_lead}
    return {
        "target": GAP_FACTOR * noise.target,
        "draft": GAP_FACTOR * noise.draft,
        **{name: SWING_FACTOR * lead for name, lead in leads.items() if lead is not None},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tau:
    """Near-tie thresholds of a run, from the noise it measured between matrix shapes.

    Attributes:
        target, draft: ten times the largest difference of any logit; gaps are held against these
            where swings can't be.
        target_swing, draft_swing: four times the change of a lead, as its 99 % quantile; None in a
            run that did not measure it.
    """

    target: float
    draft: float
    target_swing: float | None = None
    draft_swing: float | None = None

    @classmethod
    def recorded(cls, record: Mapping[str, float]) -> "Tau":
        """As `run.json` holds them; 0 where a run has none."""
        return cls(
            target=record.get("target", 0.0),
            draft=record.get("draft", 0.0),
            target_swing=record.get("target_swing"),
            draft_swing=record.get("draft_swing"),
        )

    def wider(self, other: "Tau") -> "Tau":
        """What holds for both of two runs: the larger noise; swings only where both know them."""
        return Tau(
            target=max(self.target, other.target),
            draft=max(self.draft, other.draft),
            target_swing=_larger(self.target_swing, other.target_swing),
            draft_swing=_larger(self.draft_swing, other.draft_swing),
        )

    def limit(self, side: Side, levels: int = 1) -> float:
        """What a swing is held against, or a gap where `knows_swings` is false.

        Errors of levels of a tree add up like independent ones, so they grow with the root.
        """
        gap, swing = (
            (self.target, self.target_swing) if side == "target" else (self.draft, self.draft_swing)
        )
        return gap if swing is None else swing * levels**0.5

    def knows_swings(self, side: Side) -> bool:
        """Whether this side's swings are judged, rather than its gaps."""
        return (self.target_swing if side == "target" else self.draft_swing) is not None

    def covers(self, side: Side, *, gap: float, swing: float, levels: int = 1) -> bool:
        """Whether noise could have made such a parting."""
        return (swing if self.knows_swings(side) else gap) < self.limit(side, levels)


@dataclass(frozen=True, slots=True)
class CloseShares:
    """Shares of choices whose lead alone is below the threshold; None without a choice.

    Noise could turn them, so where they are many a near-tie says little about its cause.
    """

    target: float | None
    draft: float | None

    @property
    def are_many(self) -> bool:
        """Whether near-ties are no rare accident at this precision, on either side."""
        return max(self.target or 0.0, self.draft or 0.0) > MANY_CLOSE


def close_shares(turns: Sequence[MeasuredTurn], tau: Tau) -> CloseShares:
    """Of all choices in verify steps of turns that ran and are measured."""
    steps = [step for turn in answered(turns) for step in turn.steps]
    limit = tau.limit("target")
    return CloseShares(
        target=_share([gap < limit for step in steps for gap in step.target_gaps]),
        draft=_share([flag for step in steps for flag in _close_drafts(step, tau)]),
    )


def _close_drafts(step: VerifyStep, tau: Tau) -> list[bool]:
    """One flag a token of a chain; one for a whole tree, whose nodes carry its smallest lead."""
    if not step.parents:
        limit = tau.limit("draft")
        return [gap < limit for gap in step.draft_gaps]
    return [min(step.draft_gaps) < tau.limit("draft", step.num_levels)]


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _larger(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)
