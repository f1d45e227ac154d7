"""What another batch does to the leads of an engine that shows no logits."""

from collections.abc import Iterable, Sequence
from math import isfinite

from eaglebench.records.models import NumericNoise
from eaglebench.records.observation import RequestObservation, VerifyStep

NOISE_TOKENS = 16
_QUANTILE = 0.99


def noise_of(pairs: Iterable[tuple[RequestObservation, RequestObservation]]) -> NumericNoise:
    """The same requests alone and in a batch: changes of leads where both chose the same.

    A lead is a difference of two logits, so no logit moved by less than half of its change.
    """
    target, draft = [], []
    for alone, together in pairs:
        if alone.output_token_ids[:1] != together.output_token_ids[:1]:
            continue
        for mine, theirs in zip(alone.steps, together.steps, strict=False):
            if (mine.drafted_ids, mine.target_ids) != (theirs.drafted_ids, theirs.target_ids):
                break
            target += _changes(mine, theirs, "target_gaps")
            draft += _changes(mine, theirs, "draft_gaps")
    return NumericNoise(
        target=max(target, default=0.0),
        draft=max(draft, default=0.0),
        target_lead=_quantile(target),
        draft_lead=_quantile(draft),
    )


def _changes(mine: VerifyStep, theirs: VerifyStep, name: str) -> list[float]:
    both = zip(getattr(mine, name), getattr(theirs, name), strict=False)
    return [abs(left - right) for left, right in both if isfinite(left) and isfinite(right)]


def _quantile(changes: Sequence[float]) -> float | None:
    if not changes:
        return None
    ordered = sorted(changes)
    return ordered[min(int(len(ordered) * _QUANTILE), len(ordered) - 1)]
