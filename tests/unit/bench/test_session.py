"""The session: order of arms, turns, resume, replay, refusals."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest

from eaglebench.bench.prompts import prompt_token_ids
from eaglebench.errors import NothingMeasuredError, UsageError
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import StoredTurn
from eaglebench.records.generation import GenerationRequest, Sampling
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import RequestObservation
from eaglebench.store.run_folder import RunFolder
from tests.fakes import ByteTokenizer, ScriptedBackend, ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talk, make_talks

FACTS = "question_id turn arm counters.cached_tokens output_token_ids accepted_per_step"
COUNTS = attrgetter(*FACTS.split())


def run_toy(
    root: Path, talks: Sequence[Conversation] | None = None, **options: object
) -> RunFolder:
    """A finished run of the toy."""
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, talks or make_talks(), **options).run()  # type: ignore[arg-type]
    return folder


def facts(folder: RunFolder) -> list[tuple[object, ...]]:
    """What must not depend on how often a run was interrupted."""
    found = [COUNTS(turn) for turn in folder.turns()]
    return sorted(found, key=str)


class _Stopping(ScriptedRuntime):
    """A runtime whose user presses Ctrl-C after some answers."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.left = answers

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend that counts answers down."""
        outer = self

        class Counting(ScriptedBackend):
            def _observe(self, row: object) -> RequestObservation:
                outer.left -= 1
                if outer.left < 0:
                    raise KeyboardInterrupt
                return super()._observe(row)  # type: ignore[arg-type]

        return Counting(knobs, [])


class _Listening(ScriptedRuntime):
    """A runtime that remembers how its requests are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, set[Sampling | None]] = {}

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend that listens."""
        outer = self

        class Listening(ScriptedBackend):
            def _observe(self, row: object) -> RequestObservation:
                request: GenerationRequest = row.request  # type: ignore[attr-defined]
                outer.heard.setdefault(request.request_id, set()).add(request.sampling)
                return super()._observe(row)  # type: ignore[arg-type]

        return Listening(knobs, [])


def place_of(turn: MeasuredTurn) -> tuple[str, str, int]:
    """Arm, question and turn."""
    return (turn.arm, turn.question_id, turn.turn)


def test_every_question_turn_and_arm_is_recorded_once(tmp_path: Path) -> None:
    """Four questions of two turns in two arms are sixteen lines."""
    folder = run_toy(tmp_path)

    keys = [turn.key for turn in folder.turns()]
    assert len(keys) == len(set(keys)) == 16
    steps = folder.steps()
    assert all(len(steps[turn.key]) == turn.counters.verify_steps for turn in folder.turns())


def test_order_of_arms_turns_round(tmp_path: Path) -> None:
    """A B, then B A."""
    folder = run_toy(tmp_path)

    order = [block.arm for block in folder.blocks()]
    assert order == ["radix", "no-cache", "no-cache", "radix"] * 2


def test_every_turn_is_drawn_with_coins_of_its_own(tmp_path: Path) -> None:
    """Seed, question and turn name them, in both arms alike; the rule comes from the options."""
    runtime = _Listening()
    session = make_session(
        runtime,
        make_folder(tmp_path),
        make_talks(2),
        seed=3,
        warmup=0,
        temperature=0.7,
        top_p=0.9,
        sampling_top_k=5,
        accept_threshold_single=0.8,
        accept_threshold_acc=0.9,
    )

    session.run()

    assert runtime.heard == {
        name: {
            Sampling(
                temperature=0.7,
                top_p=0.9,
                top_k=5,
                threshold_single=0.8,
                threshold_acc=0.9,
                coin_key=f"3/{name}",
            )
        }
        for name in ("q0/0", "q0/1", "q1/0", "q1/1")
    }


def test_odd_seed_starts_with_the_other_arm(tmp_path: Path) -> None:
    """The seed settles which arm goes first."""
    assert run_toy(tmp_path, seed=1).blocks()[0].arm == "no-cache"


def test_second_turn_holds_the_first_answer(tmp_path: Path) -> None:
    """The prompt is made of text: question, the arm's own answer, question."""
    turns = {place_of(turn): turn for turn in run_toy(tmp_path).turns()}

    first, second = turns["radix", "q0", 0], turns["radix", "q0", 1]
    tokenizer = ByteTokenizer()
    said = tokenizer.decode(second.prompt_token_ids)
    assert said == (
        f"<user>Please tell me about item 0.<assistant>{tokenizer.decode(first.output_token_ids)}"
        "<user>And then?<assistant>"
    )


def test_cache_arms_differ_in_cached_tokens_only(tmp_path: Path) -> None:
    """Hits happened, and the accepted counts are the same."""
    folder = run_toy(tmp_path)
    radix = [turn for turn in folder.turns() if turn.arm == "radix"]
    cold = {turn.key[2:]: turn for turn in folder.turns() if turn.arm == "no-cache"}

    assert sum(turn.counters.cached_tokens or 0 for turn in radix) > 0
    assert sum(turn.counters.accepted or 0 for turn in radix) > 0
    for turn in radix:
        assert turn.accepted_per_step == cold[turn.key[2:]].accepted_per_step


@pytest.mark.parametrize("parallel", [2, 3])
def test_parallel_blocks_hold_several_questions(tmp_path: Path, parallel: int) -> None:
    """Eight for each place, or all where there are too few for two such blocks."""
    folder = run_toy(tmp_path, make_talks(40), cells=[make_cell(parallel=parallel)])

    sizes = [len(block.question_ids) for block in folder.blocks() if block.arm == "radix"]
    assert sizes == ([20, 20] if parallel == 2 else [40])
    assert len(folder.turns()) == 160


def test_warm_up_leaves_no_trace(tmp_path: Path) -> None:
    """It runs before every arm and is forgotten by a reset."""
    runtime, folder = ScriptedRuntime(), make_folder(tmp_path)
    make_session(runtime, folder, make_talks(1), warmup=2).run()

    for backend in runtime.backends:
        assert backend.served[:2] == ["warm-up/0", "warm-up/1"]
        assert backend.num_resets == 1
        assert backend.is_closed
    assert {turn.question_id for turn in folder.turns()} == {"q0"}


@pytest.mark.parametrize("answers", [0, 1, 2, 3, 7, 15])
def test_resume_gives_the_run_that_was_not_interrupted(tmp_path: Path, answers: int) -> None:
    """No question is lost or counted twice, and hits are what they would have been."""
    whole = facts(run_toy(tmp_path / "whole"))
    folder = make_folder(tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        make_session(_Stopping(answers), folder, make_talks(), warmup=0).run()

    folder.prepare_resume()
    make_session(ScriptedRuntime(), folder, make_talks()).run()

    assert facts(folder) == whole
    assert len(folder.blocks()) == 8


@pytest.mark.parametrize("name", ["requests.jsonl", "steps.jsonl", "blocks.jsonl"])
@pytest.mark.parametrize("cut", [1, 2, 17, 50, 400])
def test_resume_mends_a_cut_file(tmp_path: Path, name: str, cut: int) -> None:
    """Whatever a crash cut off any file is measured again."""
    whole = run_toy(tmp_path / "whole")
    folder = run_toy(tmp_path / "cut")
    raw = (folder.path / name).read_bytes()
    (folder.path / name).write_bytes(raw[:-cut])

    folder.prepare_resume()
    make_session(ScriptedRuntime(), folder, make_talks()).run()

    assert facts(folder) == facts(whole)
    assert len(folder.blocks()) == 8


def test_resume_of_a_finished_run_does_nothing(tmp_path: Path) -> None:
    """No backend is made."""
    folder, runtime = run_toy(tmp_path), ScriptedRuntime()
    make_session(runtime, folder, make_talks()).run()

    assert runtime.backends == []


def test_replay_feeds_stored_prompts_and_answers(tmp_path: Path) -> None:
    """Both arms verify the stored trajectory; questions that were not stored are left out."""
    stored = {
        ("q1", 0): StoredTurn(prompt_token_ids=(80, 81, 82), output_token_ids=tuple(b"stored one")),
        ("q1", 1): StoredTurn(prompt_token_ids=None, output_token_ids=tuple(b"two")),
        ("q2", 0): StoredTurn(prompt_token_ids=None, output_token_ids=tuple(b"half")),
    }
    folder = run_toy(tmp_path, replay=stored)

    turns = {place_of(turn): turn for turn in folder.turns()}
    assert {key[1:] for key in turns} == {("q1", 0), ("q1", 1)}
    for arm in ("radix", "no-cache"):
        assert turns[arm, "q1", 0].prompt_token_ids == (80, 81, 82)
        assert bytes(turns[arm, "q1", 0].output_token_ids) == b"stored one"
        assert bytes(turns[arm, "q1", 1].output_token_ids) == b"two"
        assert b"<assistant>stored one<user>" in bytes(turns[arm, "q1", 1].prompt_token_ids)


def test_replay_of_other_questions_measures_nothing(tmp_path: Path) -> None:
    """It never looks like a pass."""
    replay = {("x", 0): StoredTurn(prompt_token_ids=None, output_token_ids=(1,))}
    session = make_session(ScriptedRuntime(), make_folder(tmp_path), make_talks(), replay=replay)

    with pytest.raises(NothingMeasuredError):
        session.run()


def test_prompt_that_does_not_fit_is_refused_with_numbers(tmp_path: Path) -> None:
    """Before any backend is made."""
    runtime = ScriptedRuntime()
    talks = [make_talk("long", "x" * 200)]
    cells = [make_cell(max_total_tokens=64)]
    session = make_session(runtime, make_folder(tmp_path), talks, cells=cells, max_total_tokens=64)

    with pytest.raises(UsageError, match="question long: prompt of 217 tokens; the pool has 64"):
        session.run()
    assert runtime.backends == []


def test_prompt_that_does_not_fit_becomes_a_failed_row(tmp_path: Path) -> None:
    """With --continue-on-error the others run, and the failure is a row, not a gap."""
    talks = [make_talk("long", "x" * 200, "more"), make_talk("short", "hi")]
    folder = run_toy(
        tmp_path, talks, cells=[make_cell(max_total_tokens=64)], continue_on_error=True
    )

    rows = {place_of(turn): turn for turn in folder.turns()}
    assert rows["radix", "long", 0].error is not None
    assert ("radix", "long", 1) not in rows
    assert rows["radix", "short", 0].error is None


def test_empty_prompt_is_refused_with_its_question(tmp_path: Path) -> None:
    """A raw prompt of no tokens never reaches the engine, not even as a later turn."""
    talks = [make_talk("blank", "a", "", kind="raw")]
    session = make_session(ScriptedRuntime(), make_folder(tmp_path), talks)

    with pytest.raises(UsageError, match="question blank: the prompt has no tokens"):
        session.run()


@pytest.mark.parametrize(
    ("own", "knob", "recorded"),
    [(None, None, None), (128, None, 128), (128, 64, 64), (128, 0, None)],
)
def test_the_window_that_was_seen_is_recorded(
    tmp_path: Path, own: int | None, knob: int | None, recorded: int | None
) -> None:
    """The model's own or the cell's; null where all layers see everything."""
    runtime = ScriptedRuntime()
    runtime.info = replace(runtime.info, window=own)
    folder = make_folder(tmp_path)
    make_session(runtime, folder, make_talks(1), cells=[make_cell(sliding_window=knob)]).run()

    assert {turn.window for turn in folder.turns()} == {recorded}


def test_a_window_for_a_model_without_window_layers_is_refused(tmp_path: Path) -> None:
    """Before the cells in front of it are computed."""
    folder = make_folder(tmp_path)
    cells = [make_cell(), make_cell(sliding_window=64)]
    session = make_session(ScriptedRuntime(), folder, make_talks(1), cells=cells)

    with pytest.raises(UsageError, match="--sliding-window 64: toy has no sliding-window layers"):
        session.run()
    assert folder.turns() == []


def test_donors_are_recorded_but_not_measured(tmp_path: Path) -> None:
    """A ladder's donors have lines of their own."""
    talk = make_talk("ladder", "You x", "You are", kind="raw", measured=[False, True])
    turns = run_toy(tmp_path, [talk]).turns()

    assert [(turn.turn, turn.is_measured) for turn in turns if turn.arm == "radix"] == [
        (0, False),
        (1, True),
    ]


def test_wall_time_is_read_around_generation_only(tmp_path: Path) -> None:
    """A clock that ticks at every reading is read twice a block."""
    assert {block.wall_s for block in run_toy(tmp_path).blocks()} == {0.5}


def test_collector_runs_again_afterwards(tmp_path: Path) -> None:
    """Paused in a block, enabled and unfrozen after the run."""
    run_toy(tmp_path)

    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_noise_is_measured_on_the_runs_own_prompts(tmp_path: Path) -> None:
    """The first three of four."""
    runtime = ScriptedRuntime()
    session = make_session(runtime, make_folder(tmp_path), make_talks(4))

    assert session.noise() == runtime.measure_noise(())
    prompts = [prompt_token_ids(talk, 0, (), runtime.tokenizer) for talk in make_talks(3)]
    assert runtime.noise_prompts[0] == prompts


def test_rounds_repeat_from_the_same_caches(tmp_path: Path) -> None:
    """Every pass gives the same counts, and the order of arms goes on turning round."""
    folder = run_toy(tmp_path, passes="3")

    assert {turn.pass_index for turn in folder.turns()} == {0, 1, 2}
    for turn in folder.turns():
        first = next(
            t for t in folder.turns() if place_of(t) == place_of(turn) and t.pass_index == 0
        )
        assert turn.counters == first.counters
        assert turn.accepted_per_step == first.accepted_per_step
    order = [block.arm for block in folder.blocks() if block.block == 0]
    assert order == ["radix", "no-cache", "no-cache", "radix", "radix", "no-cache"]


def test_rounds_stop_when_times_are_precise(tmp_path: Path) -> None:
    """Asked after the smallest number of passes, and after each one more."""
    asked: list[int] = []

    def is_precise(folder: RunFolder, _cell_id: str) -> bool:
        asked.append(1 + max(block.pass_index for block in folder.blocks()))
        return asked[-1] == 4

    folder = run_toy(tmp_path, passes="2:9", is_precise=is_precise)

    assert asked == [2, 3, 4]
    assert {block.pass_index for block in folder.blocks()} == {0, 1, 2, 3}


def test_rounds_go_through_all_cells_in_turn(tmp_path: Path) -> None:
    """A pass of every cell comes before the next one, there and back; one cell stops alone."""
    cells = [make_cell(num_steps=steps, num_draft_tokens=steps + 1) for steps in (1, 2)]
    first, second = (cell.cell_id for cell in cells)

    folder = run_toy(
        tmp_path,
        cells=cells,
        passes="2:3",
        is_precise=lambda _folder, cell_id: cell_id == first,
    )

    order = [(block.pass_index, block.cell_id) for block in folder.blocks() if not block.order]
    passes = list(dict.fromkeys(order))
    assert passes == [(0, first), (0, second), (1, second), (1, first), (2, second)]
