"""`explain` names the mechanism of every fault arm, and of a key fault planted in the radix arm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eaglebench.bench.stored_run import open_run
from eaglebench.engine.faults import UnigramFault
from eaglebench.engine.policy import EnginePolicy
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.provenance import History, reserved_end
from eaglebench.store.decode import measured_turns
from tests.stored_runs import invoke

FAULTS = ("unigram", "kv-reuse", "seam-guess")


def run(*args: str) -> str:
    """Measure on the shipped models; the id of the run."""
    status, _, err = invoke("run", "tiny", "-o", "out", "--progress", "none", *args)
    assert status == 0, err
    return open_run("latest", "out").folder.run_id


def turns_of(run_id: str) -> list[MeasuredTurn]:
    """All turns of a run."""
    return measured_turns(open_run(run_id, "out").folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Runs by name: the fault arms, trees without look-ahead, sound keys, planted keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("explained"))
        made = {"faults": run("--arms", ",".join((*FAULTS, "no-cache")), *CHUNKS)}
        tree = ("--num-steps", "5", "--eagle-topk", "4", "--num-draft-tokens", "8")
        made["trees"] = run("--arms", "no-lookahead,no-cache", *tree, "-n", "3")
        made["sound"] = run("--arms", "radix", "-n", "6")
        with pytest.MonkeyPatch.context() as plant:
            plant.setattr(EnginePolicy, "make_key", UnigramFault.make_key)
            plant.setattr(EnginePolicy, "cacheable_units", UnigramFault.cacheable_units)
            made["planted"] = run("--arms", "radix", "-n", "6")
        yield made


CHUNKS = ("--chunked-prefill-size", "16", "-n", "6")


def explained(run_id: str, question: str, *args: str) -> str:
    """What `explain` says, its line ends taken out."""
    status, out, err = invoke("explain", run_id, "-", question, "-o", "out", *args)
    assert status == 0, err
    return " ".join(out.split())


def test_unigram_is_a_key_that_ignores_the_next_token(runs: dict[str, str]) -> None:
    """Question 6 hits one slot more than pairs allow, written before another next token."""
    out = explained(runs["faults"], "6", "--arm", "unigram")

    assert "114 tokens cached (recorded); 114 leading tokens shared" in out
    assert "keys of token pairs in pages of 1 allow 113 (inferred)" in out
    assert "cause on the side of unigram: cache key: slot 1 was written by question 1 turn 1" in out
    assert "slot 113 was written by question 4 turn 1 with next token 's', here 'n' follows" in out
    assert "the mechanism of unigram" in out
    assert "end of the hit" in out


def test_kv_reuse_is_draft_kv_of_the_proposal(runs: dict[str, str]) -> None:
    """Question 4 parts behind accepted drafts whose slots were not written again."""
    out = explained(runs["faults"], "4", "--arm", "kv-reuse")

    assert "cause on the side of kv-reuse: kept proposal: 9 slots, the first 136" in out
    assert "not written again from the target's after verify" in out
    assert "cache key" not in out


def test_seam_guess_is_a_guess_at_a_chunk_seam(runs: dict[str, str]) -> None:
    """Question 2 turn 2 reads seams of its own and of those who cached its prefix."""
    out = explained(runs["faults"], "2", "--turn", "2", "--arm", "seam-guess")

    assert "cause on the side of seam-guess: chunk seam: 4 slots, the first 15" in out
    assert "the target's guess instead of the prompt's next token: ' ' for 'd'" in out
    assert "chunks of its own prefill ended at 131 (recorded)" in out
    assert "cache key" not in out


def test_no_lookahead_is_a_proposal_past_its_reservation(runs: dict[str, str]) -> None:
    """Another draft that was rejected in both arms is explained as well."""
    out = explained(runs["trees"], "2", "--arm", "no-lookahead")

    assert "identical to no-cache" in out
    assert "another token, which was rejected in both, at step 12 (root 101), position 102" in out
    assert "slots were reserved up to 104 (inferred)" in out
    assert "past the reservation: slots 105-108" in out


def test_a_key_fault_is_seen_by_its_hit_in_an_arm_that_is_sound(runs: dict[str, str]) -> None:
    """Two runs of the radix arm, one of code with single-token keys: the cause is on its side."""
    planted, sound = runs["planted"], runs["sound"]

    out = explained(planted, "6", "--against-run", sound)
    back = explained(sound, "6", "--against-run", planted)

    for told in (out, back):
        assert f"cause on the side of radix of {planted}: cache key: slot" in told
        assert f"cause on the side of radix of {sound}" not in told


def test_sound_arms_have_no_suspects(runs: dict[str, str]) -> None:
    """In arms without a fault no slot is suspected, and hits are what pair keys allow."""
    checked = 0
    for name in ("sound", "faults"):
        turns = turns_of(runs[name])
        for turn in turns:
            if turn.arm in {"radix", "no-cache"}:
                last = len(turn.steps) - 1
                reading = History(turns, turn).reading(last, turn.steps[last].position + 2)
                assert reading.suspects == [], turn.key
                assert reading.hit is not None
                if turn.arm == "radix":
                    assert reading.hit.cached == reading.hit.allowed, turn.key
                checked += 1

    assert checked > 15


@pytest.mark.parametrize(
    "knobs",
    [
        ("--page-size", "4", "--num-steps", "5"),
        ("--preallocation", "covered", "--preallocate-tokens", "12", *CHUNKS[:2]),
        ("--preallocation", "lookahead-blocks", "--page-size", "4"),
    ],
)
def test_reserved_slots_are_those_the_engine_took(
    knobs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inferred end of the reservation agrees with the pages counted, turn by turn."""
    monkeypatch.chdir(tmp_path)
    turns = turns_of(run("--arms", "no-lookahead", "-n", "3", *knobs))

    for turn in turns:
        assert turn.counters.pages_allocated is not None
        assert turn.counters.cached_tokens is not None
        taken = turn.counters.pages_allocated * turn.knobs.page_size
        assert reserved_end(turn, len(turn.steps)) == turn.counters.cached_tokens + taken
