"""A resumed run is the run that was not interrupted, to the last counter, in every arm.

Planted faults leave draft KV behind that no list of tokens describes, and a scarce pool evicts by
the order of what came before: caches can't be filled again from prompts and answers alone.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from eaglebench.backends.embedded import EmbeddedRuntime
from eaglebench.backends.loading import load_embedded
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.questions import read_question_file
from eaglebench.records.knobs import ARMS
from eaglebench.records.models import ModelChoice
from eaglebench.records.observation import RequestTimes
from eaglebench.store.decode import measured_turns
from eaglebench.store.run_folder import RunFolder
from tests.engines import TINY, TINY_HEAD
from tests.sessions import make_cell, make_folder, make_session, make_talk

TIMES: dict[str, Any] = {
    "times": RequestTimes(queue_s=0.0, prefill_s=0.0, decode_s=0.0, total_s=0.0),
    "run_id": "run",
}
"""In place of what a second run can't repeat."""
NUM_QUESTIONS = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """Knobs of the cell, and options of the run."""

    knobs: dict[str, Any]
    options: dict[str, Any]


SETTINGS = {
    "plain": Setting({"max_total_tokens": 2048}, {"arms": ("radix", "kv-reuse", "no-cache")}),
    "scarce": Setting(
        {"max_total_tokens": 176, "page_size": 4, "chunked_prefill_size": 16}, {"arms": ARMS}
    ),
    "batched": Setting(
        {"max_total_tokens": 256, "page_size": 4, "parallel": 2},
        {"arms": ("radix", "no-lookahead", "kv-reuse", "no-cache"), "passes": "2"},
    ),
}


@cache
def runtime() -> EmbeddedRuntime:
    """The tiny pair."""
    return load_embedded(
        ModelChoice(target=str(TINY), draft=str(TINY_HEAD), dtype="float32", num_threads=1)
    )


@cache
def talks() -> tuple[Conversation, ...]:
    """Chats that the pair can answer, with the first question once more at the end."""
    questions = read_question_file(TINY / "prompts.jsonl").questions[:NUM_QUESTIONS]
    asked = [make_talk(question.question_id, *question.turns) for question in questions]
    return (*asked, replace(asked[0], question_id="again"))


def run(folder: RunFolder, setting: Setting) -> None:
    """Run what is left in a folder."""
    make_session(
        runtime(),
        folder,
        talks(),
        cells=[make_cell(**setting.knobs)],
        max_new_tokens=14,
        block_depth=1,
        **setting.options,
    ).run()


def facts(folder: RunFolder) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Every turn and every verify step, without times."""
    turns = {turn.key: replace(turn, **TIMES) for turn in folder.turns()}
    return turns, folder.steps()


def after_blocks(whole: RunFolder, path: Path, count: int) -> RunFolder:
    """The folder as it was when so many blocks had ended."""
    copytree(whole.path, path)
    folder = RunFolder(path)
    kept = [(b.cell_id, b.arm, b.pass_index, b.block) for b in folder.blocks()[:count]]
    turns = [t for t in measured_turns(folder) if (t.cell_id, t.arm, t.pass_index, t.block) in kept]
    blocks = folder.blocks()[:count]
    for name in ("requests.jsonl", "steps.jsonl", "blocks.jsonl"):
        (path / name).unlink()
    for block in blocks:
        mine = (block.cell_id, block.arm, block.pass_index, block.block)
        here = [t for t in turns if (t.cell_id, t.arm, t.pass_index, t.block) == mine]
        folder.append(here, block)
    return folder


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    """Every setting, run without an interruption."""
    found = {}
    for name, setting in SETTINGS.items():
        found[name] = make_folder(tmp_path_factory.mktemp(name))
        run(found[name], setting)
    return found


def check(whole: RunFolder, path: Path, setting: Setting, count: int) -> None:
    """Go on after so many blocks, and compare everything."""
    resumed = after_blocks(whole, path, count)
    run(resumed, setting)
    turns, steps = facts(resumed)
    expected_turns, expected_steps = facts(whole)

    assert turns == expected_turns
    assert steps == expected_steps


def test_there_is_something_to_lose(whole_runs: dict[str, RunFolder]) -> None:
    """Hits, evictions and drafts that are accepted, or nothing below would say much."""
    turns = {name: folder.turns() for name, folder in whole_runs.items()}

    for mine in turns.values():
        assert sum(turn.counters.cached_tokens or 0 for turn in mine) > 0
        assert sum(turn.counters.accepted or 0 for turn in mine) > 0.3 * sum(
            turn.counters.verify_steps or 0 for turn in mine
        )
        assert not any(turn.error for turn in mine)
    assert sum(turn.counters.evictions or 0 for turn in turns["scarce"] if turn.arm == "radix") > 0
    assert sum(turn.counters.evictions or 0 for turn in turns["batched"]) > 0


@pytest.mark.parametrize(
    ("name", "count"),
    [("plain", 2), ("plain", 7), ("scarce", 9), ("scarce", 23), ("batched", 5), ("batched", 17)],
)
def test_a_resumed_run_is_the_run_that_was_not_interrupted(
    whole_runs: dict[str, RunFolder], tmp_path: Path, name: str, count: int
) -> None:
    """After a block in the middle of a pass, with arms that are one block apart."""
    check(whole_runs[name], tmp_path / "cut", SETTINGS[name], count)


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_can_be_interrupted_after_every_block(
    whole_runs: dict[str, RunFolder], tmp_path: Path, name: str
) -> None:
    """Each of them, of every setting."""
    for count in range(len(whole_runs[name].blocks())):
        check(whole_runs[name], tmp_path / str(count), SETTINGS[name], count)
