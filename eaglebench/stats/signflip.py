"""Does one arm need more verify steps than another for the same questions?"""

from collections.abc import Sequence

from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.resampling import RESAMPLES, SEED


def sign_flip_p_value(
    candidate: Sequence[MeasuredTurn], baseline: Sequence[MeasuredTurn]
) -> float | None:
    """One-sided paired sign-flip test that the candidate emits fewer tokens a verify step.

    Each question gives the change of (emitted - R * verify steps), with R the pooled ratio of both
    arms: for equal tokens that is the change of its verify steps. Under the null the signs are
    exchangeable. None without a pair. (Phipson & Smyth 2010: p is never 0.)
    """
    import numpy as np  # noqa: PLC0415  # numpy and scipy are slow to import
    from scipy import stats  # noqa: PLC0415

    mine, theirs = _per_question(candidate), _per_question(baseline)
    shared = [name for name in mine if name in theirs]
    if not shared:
        return None
    here, there = (np.array([side[name] for name in shared]) for side in (mine, theirs))
    emitted, steps = (here + there).sum(0)
    change = here - there
    differences = change[:, 0] - emitted / steps * change[:, 1]
    if not differences.any():
        return 1.0
    if len(differences) == 1:  # too few for scipy: of the two signs, one is this bad
        return 0.5 if differences[0] < 0 else 1.0
    result = stats.permutation_test(
        (differences,),
        lambda values, axis: np.mean(values, axis=axis),
        permutation_type="samples",
        alternative="less",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    return float(result.pvalue)


def _per_question(turns: Sequence[MeasuredTurn]) -> dict[str, tuple[int, int]]:
    """Emitted tokens and verify steps of every question that has steps."""
    sums: dict[str, tuple[int, int]] = {}
    for turn in turns:
        emitted, steps = turn.counters.emitted, turn.counters.verify_steps
        if turn.is_measured and turn.error is None and emitted is not None and steps:
            before = sums.get(turn.question_id, (0, 0))
            sums[turn.question_id] = (before[0] + emitted, before[1] + steps)
    return sums
