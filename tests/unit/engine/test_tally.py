"""Counts of one request, from steps made by hand."""

from eaglebench.engine.tally import Tally
from eaglebench.records.observation import VerifyStep


def make_step(num_drafted: int, accepted: int, emitted: int) -> VerifyStep:
    """A step of a chain."""
    return VerifyStep(
        position=9,
        drafted_ids=(5,) * num_drafted,
        target_ids=(5,) * (num_drafted + 1),
        accepted=accepted,
        emitted=emitted,
        target_gaps=(1.0,) * (num_drafted + 1),
        draft_gaps=(1.0,) * num_drafted,
    )


def test_sums_over_steps() -> None:
    """Four steps, one without a draft, the last cut after one of its four tokens.

    Accepted before the cut: 2 + 0 + 1 + 3 = 6; one bonus a step: 4; delivered 3 + 1 + 2 + 1 = 7, so
    6 + 4 - 7 = 3 were cut. Three steps carried drafts: 3 + 3 + 3 = 9 proposed tokens.
    """
    steps = [make_step(3, 2, 3), make_step(0, 0, 1), make_step(3, 1, 2), make_step(3, 3, 1)]

    counters = Tally(prefill_sampled=1).freeze(prompt_tokens=10, output_tokens=8, steps=steps)

    assert (counters.verify_steps, counters.num_drafts, counters.drafted) == (4, 3, 9)
    assert (counters.accepted, counters.bonus, counters.overrun) == (6, 4, 3)
    assert counters.emitted == 7
    assert counters.output_tokens == (counters.prefill_sampled or 0) + (counters.emitted or 0)


def test_hits_of_a_resume_are_counted_by_themselves() -> None:
    """The first admission is `cached_tokens`; every later one adds to `resumed_tokens`."""
    tally = Tally()
    tally.add_hit(12)
    for hit in (20, 31):
        tally.preemptions += 1
        tally.add_hit(hit)

    counters = tally.freeze(prompt_tokens=16, output_tokens=0, steps=[])

    assert (counters.cached_tokens, counters.resumed_tokens) == (12, 51)
