"""Arms are paired by question and turn; the first choice that parts is named with its gap."""

from dataclasses import replace
from pathlib import Path

import pytest

from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.pairing import Pair, PairClass, first_parting, pair_turns
from eaglebench.stats.tau import Tau
from eaglebench.store.decode import measured_turns
from tests.fakes import NOISE, Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks

TAU = Tau(target=10 * NOISE, draft=10 * NOISE)


def arms_of(root: Path, *plants: Plant) -> tuple[list[MeasuredTurn], list[MeasuredTurn]]:
    """The turns of radix, with these plants, and of no-cache."""
    folder = make_folder(root)
    talks = [*make_talks(3), make_talk("odd", "Please do the odd thing.", "And then?")]
    make_session(ScriptedRuntime({"radix": plants}), folder, talks).run()
    turns = measured_turns(folder)
    return [t for t in turns if t.arm == "radix"], [t for t in turns if t.arm == "no-cache"]


def pairs_of(root: Path, *plants: Plant) -> dict[tuple[str, int], Pair]:
    """Pairs by question and turn."""
    return {(p.question_id, p.turn): p for p in pair_turns(*arms_of(root, *plants), TAU)}


def test_equal_arms_are_identical(tmp_path: Path) -> None:
    """Every turn, and something was accepted."""
    radix, cold = arms_of(tmp_path)
    pairs = pair_turns(radix, cold, TAU)

    assert len(pairs) == 8
    assert {pair.kind for pair in pairs} == {"identical"}
    assert sum(turn.counters.accepted or 0 for turn in radix) > 0


@pytest.mark.parametrize(
    ("side", "gap", "kind"),
    [
        ("draft", 1e-5, "near-tie"),
        ("draft", 1.0, "draft-state"),
        ("target", 1e-5, "near-tie"),
        ("target", 1.0, "target-state"),
    ],
)
def test_first_parting_is_judged_by_its_gap(
    tmp_path: Path, side: str, gap: float, kind: PairClass
) -> None:
    """The planted choice is found: side, position and gap."""
    pairs = pairs_of(tmp_path, Plant(word="odd", side=side, gap=gap, output_index=5))

    odd = pairs["odd", 0]
    assert odd.kind == kind
    assert odd.parting is not None
    assert (odd.parting.side, odd.parting.gap) == (side, gap)
    assert {pair.kind for (name, _), pair in pairs.items() if name != "odd"} == {"identical"}


def test_matched_output_counts_verify_steps(tmp_path: Path) -> None:
    """A wrong draft leaves the output alone and costs steps."""
    odd = pairs_of(tmp_path, Plant(word="odd", side="draft", output_index=5))["odd", 0]

    assert odd.has_same_output
    assert (odd.verify_steps_difference or 0) >= 0


def test_turn_after_a_diverged_answer_is_unpaired(tmp_path: Path) -> None:
    """Its prompts differ between the arms, and it says so."""
    pairs = pairs_of(tmp_path, Plant(word="odd", side="target", gap=1e-5))

    assert pairs["odd", 1].kind == "diverged-prompt"


def test_turns_in_one_arm_only_are_left_out(tmp_path: Path) -> None:
    """A partial run compares what both arms have."""
    radix, cold = arms_of(tmp_path)

    assert len(pair_turns(radix, cold[:3], TAU)) == 3


def test_draft_choice_that_nobody_reached_is_not_the_cause(tmp_path: Path) -> None:
    """A difference behind a rejected draft changes nothing; the later one is named."""
    turn = next(t for t in arms_of(tmp_path)[0] if any(s.accepted == 0 for s in t.steps[:-1]))
    rejected = next(n for n, step in enumerate(turn.steps) if step.accepted == 0)
    steps = list(turn.steps)
    unseen = steps[rejected]
    steps[rejected] = replace(unseen, drafted_ids=(unseen.drafted_ids[0], 1), draft_gaps=(1, 1e-6))
    last = steps[-1]
    steps[-1] = replace(last, drafted_ids=(1, 1), accepted=0)
    other = replace(turn, steps=tuple(steps))

    parting = first_parting(turn, other)
    assert parting is not None
    assert (parting.side, parting.step) == ("draft", len(steps) - 1)
