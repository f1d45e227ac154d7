"""The gate's verdict on times, from passes to finding, in worlds whose truth is known.

Each world says how the ratio of two arms scatters: from pass to pass, along a run, and from run to
run. Runs stop as `run --precision` does, baselines are made as `baseline save --runs` makes them,
and `judge` decides. How often chance alone turns a test red is said at its limit; seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from eaglebench.bench.measure import is_precise
from eaglebench.gate.decide import judge
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.observation import StepTimes
from eaglebench.records.snapshot import Snapshot
from eaglebench.records.verdict import Verdict
from eaglebench.stats.snapshot import make_snapshot, with_runs
from tests.turns import make_measured_run, make_step, make_turn

Noise = NDArray[np.float64]
World = Callable[[np.random.Generator, int], Noise]
MOST = 40
ARMS = ("radix", "no-cache")
TIMES = StepTimes(
    prefill_s=0, mixed_s=0, decode_s=1, prefill_steps=0, mixed_steps=0, decode_steps=1
)
TURNS = tuple(make_turn(make_step(10, (3, 4), (3, 1, 0), 1), arm=arm) for arm in ARMS)


def calm(sd: float) -> World:
    """Passes scatter, and nothing else."""
    return lambda rng, count: rng.normal(0, sd, count)


def stalls(sd: float) -> World:
    """Now and then an arm waits for half a pass."""

    def world(rng: np.random.Generator, count: int) -> Noise:
        slow = rng.random((2, count)) < 1 / 40
        waits: Noise = (slow * rng.exponential(0.3, (2, count)) * [[1], [-1]]).sum(axis=0)
        return waits + rng.normal(0, sd, count)

    return world


def drift(sd: float) -> World:
    """The machine gets warm: a line along the run, of 1.2 % from end to end."""
    return lambda rng, count: (
        rng.normal(0, 0.012) * np.linspace(-1, 1, count) + rng.normal(0, sd, count)
    )


def hanging_together(sd: float) -> World:
    """A pass is like the one before it, with a correlation of 0.8."""

    def world(rng: np.random.Generator, count: int) -> Noise:
        steps = rng.normal(0, 1, count)
        for number in range(1, count):
            steps[number] = 0.8 * steps[number - 1] + 0.6 * steps[number]
        return sd * steps

    return world


def by_process(sd: float) -> World:
    """Every process is off by about 1 % of its own."""
    return lambda rng, count: rng.normal(0, 0.01) + rng.normal(0, sd, count)


def one_block(arm: str, number: int, ratio: float) -> MeasuredBlock:
    """A pass of one arm; `no-cache` takes a second."""
    return MeasuredBlock(
        cell_id="page1",
        arm=arm,
        pass_index=number,
        block=0,
        order=0,
        question_ids=("q",),
        output_tokens=100,
        verify_steps=50,
        wall_s=exp(-ratio) if arm == "radix" else 1.0,
        times=TIMES,
    )


def one_run(rng: np.random.Generator, world: World, change: float = 0.0) -> Snapshot:
    """Passes until they are known to 1 %, looked at after every eighth."""
    ratios = world(rng, MOST) + np.log1p(change)
    blocks: list[MeasuredBlock] = []
    for number, ratio in enumerate(ratios.tolist()):
        blocks += [one_block(arm, number, ratio) for arm in ARMS]
        if number % 8 == 7 and is_precise(blocks, "page1", ARMS, 0.01):
            break
    return make_snapshot(make_measured_run(*TURNS, blocks=tuple(blocks)), {})


def verdicts(
    world: World, change: float, rule: str, *, runs: int, baselines: int, seed: int = 0
) -> list[Verdict]:
    """Verdicts on throughput of eight runs against each of some baselines of so many runs."""
    rng = np.random.default_rng(seed)
    found: list[Verdict] = []
    for _ in range(baselines):
        first, *others = [one_run(rng, world) for _ in range(runs)]
        base = replace(with_runs(first, others), name="base", reason="law")
        for _ in range(8):
            judgement = judge(one_run(rng, world, change), base, Policy(rules=parse_rules([rule])))
            found += [f.verdict for f in judgement.findings if f.metric == "throughput"]
    assert len(found) == 8 * baselines
    return found


WORLDS = [calm, stalls, drift, hanging_together, by_process]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("runs", [1, 10])
def test_nothing_changed_is_not_called_a_regression(
    world: Callable[[float], World], runs: int
) -> None:
    """At 2 % allowed and a scatter of 1 % a pass, about 1 % of 400 verdicts may be red.

    Eight of them share a baseline, so that their number scatters more than one of 400 alone would:
    at a true 1 % it is above eight once in about ten such tests. The seed is fixed.
    """
    found = verdicts(world(0.01), 0.0, "throughput:2%", runs=runs, baselines=50)

    assert found.count("REGRESSED") <= 9
    assert found.count("IMPROVED") <= 9


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("sd", [0.01, 0.024])
def test_a_loss_of_five_per_cent_is_seen(world: Callable[[float], World], sd: float) -> None:
    """Of 200 runs against baselines of ten runs, at least 90 %; what is not seen is no PASS.

    Passes that hang together at 2.4 % move a whole run by more than 1 %: there it is 86 % of 960.
    """
    found = verdicts(world(sd), -0.05, "throughput:2%", runs=10, baselines=25)

    least = 0.8 if (world, sd) == (hanging_together, 0.024) else 0.9
    assert found.count("REGRESSED") >= least * len(found)
    assert "PASS" not in found


@pytest.mark.parametrize("world", [calm, stalls])
def test_a_certain_loss_is_red_whatever_the_rule(world: Callable[[float], World]) -> None:
    """Ten per cent slower, passes that scatter by 2.4 %, a baseline of one run: never status 0."""
    for rule in ("throughput:2%", "throughput:5%"):
        assert set(verdicts(world(0.024), -0.10, rule, runs=1, baselines=4)) == {"REGRESSED"}
