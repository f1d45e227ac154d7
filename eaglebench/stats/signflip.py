"""Does one arm need more verify steps than another for the same questions?"""

from collections.abc import Sequence

from eaglebench.contracts.measured import MeasuredTurn

RESAMPLES = 9999
SEED = 20260101


def sign_flip_p_value(
    candidate: Sequence[MeasuredTurn], baseline: Sequence[MeasuredTurn]
) -> float | None:
    """One-sided paired sign-flip test that the candidate emits fewer tokens a verify step.

    Each question gives the difference of its output tokens per verify step; under the null the
    signs are exchangeable. None without a pair. (Phipson & Smyth 2010: p is never 0.)
    """
    import numpy as np  # noqa: PLC0415  # numpy and scipy are slow to import
    from scipy import stats  # noqa: PLC0415

    mine, theirs = _per_question(candidate), _per_question(baseline)
    shared = [name for name in mine if name in theirs]
    if not shared:
        return None
    differences = np.array([mine[name] - theirs[name] for name in shared])
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


def _per_question(turns: Sequence[MeasuredTurn]) -> dict[str, float]:
    tokens: dict[str, list[int]] = {}
    for turn in turns:
        if turn.is_measured and turn.error is None and turn.counters.verify_steps:
            sums = tokens.setdefault(turn.question_id, [0, 0])
            sums[0] += turn.counters.output_tokens
            sums[1] += turn.counters.verify_steps
    return {name: output / steps for name, (output, steps) in tokens.items()}
