"""A against A: lengths that came up, questions that flipped, time it takes."""

from dataclasses import replace
from pathlib import Path

from eaglebench.records.measured import MeasuredRun
from eaglebench.stats.noise import measure_noise
from eaglebench.store.decode import measured_run
from tests.fakes import ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talks


def make_run(root: Path) -> MeasuredRun:
    """Radix beside itself, three passes."""
    folder = make_folder(root)
    arms = ("radix", "radix:again")
    make_session(ScriptedRuntime(), folder, make_talks(2), arms=arms, passes="3").run()
    return measured_run(folder)


def test_identical_passes_give_one_length(tmp_path: Path) -> None:
    """Six passes, no flipped question, and a ratio of one."""
    (noise,) = measure_noise(make_run(tmp_path))

    assert noise.arm == "radix"
    assert [count for _, count in noise.lengths] == [6]
    assert noise.flipped == ()
    assert noise.ratio is not None
    assert noise.ratio.passes == 3
    assert noise.pairs_needed is not None


def test_a_pass_that_differs_is_counted_and_named(tmp_path: Path) -> None:
    """Another length, and the question that flipped."""
    run = make_run(tmp_path)
    turns = list(run.turns)
    index = next(i for i, t in enumerate(turns) if t.pass_index == 1 and t.question_id == "q1")
    counters = replace(
        turns[index].counters, verify_steps=(turns[index].counters.verify_steps or 0) + 1
    )
    turns[index] = replace(turns[index], counters=counters, accepted_per_step=(0,))

    (noise,) = measure_noise(replace(run, turns=tuple(turns)))

    assert [count for _, count in noise.lengths] == [5, 1]
    assert noise.flipped == ("q1",)


def test_a_run_without_a_twin_has_no_noise(tmp_path: Path) -> None:
    """Nothing is made up."""
    folder = make_folder(tmp_path)
    make_session(ScriptedRuntime(), folder, make_talks(2)).run()

    assert measure_noise(measured_run(folder)) == []
