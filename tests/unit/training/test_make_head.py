"""The whole way from a target to a head in a folder, on the tiny pair."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.progress import SilentProgress
from eaglebench.training.make_head import HeadMaker
from eaglebench.training.recipe import (
    TrainingFiles,
    TrainingMachine,
    TrainingRecipe,
    TrainingReport,
)
from tests.engines import TINY, TINY_HEAD, tiny_models
from tests.loaded_heads import load_head

RECIPE = TrainingRecipe(
    num_conversations=24,
    user_tokens=20,
    answer_tokens=24,
    batch=8,
    updates=12,
    batch_tokens=512,
    levels=2,
    draft_vocab_size=96,
    aux_layer_ids=(1, 2, 3),
    held_out_share=0.2,
    warm_updates=2,
)
MACHINE = TrainingMachine(dtype="float32", num_threads=1)


class Recorder(SilentProgress):
    """Remembers what it is told; stops the training after so many updates."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stages: list[tuple[str, int, int]] = []
        self.notes: list[str] = []
        self._left = stop_after

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """Remember it."""
        self.stages.append((name, total, done))

    def advance(self, units: int, state: str) -> None:
        """Count down to a Ctrl-C."""
        if self._left is not None and self.stages[-1][0] == "updates":
            self._left -= units
            if self._left == 0:
                raise KeyboardInterrupt

    def note(self, line: str) -> None:
        """Remember it."""
        self.notes.append(line)


def make(
    out: Path,
    recipe: TrainingRecipe = RECIPE,
    *,
    listener: Recorder | None = None,
    start_from: Path | None = None,
) -> TrainingReport:
    """Train the tiny pair a little."""
    files = TrainingFiles(
        target=TINY, target_name="tiny", out=out, start_from=start_from, excluded=("a b c d e",)
    )
    return HeadMaker(files, recipe, MACHINE, listener or Recorder()).make()


def test_a_trained_head_loads_and_knows_more_than_before(tmp_path: Path) -> None:
    """Ten updates lower nothing but ignorance; the folder is a published head with its card."""
    report = make(tmp_path / "head", replace(RECIPE, updates=60))
    head = load_head(tmp_path / "head", tiny_models(torch.float32).target)
    card = (tmp_path / "head" / "README.md").read_text()

    assert report.before.positions == report.after.positions > 0
    assert sum(report.after.by_level) > sum(report.before.by_level)
    assert head.aux_layer_ids == (1, 2, 3)
    assert head.draft_vocab_size == 96
    assert head.report.warnings == []
    assert f"{report.after.accepted_per_step:.3f}" in card
    assert f"{report.seen_tokens:,} tokens in 60 updates" in card


def test_a_stopped_training_goes_on_to_the_same_head(tmp_path: Path) -> None:
    """Ctrl-C in the middle of the updates and the same command again give the same weights."""
    make(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "parts", listener=Recorder(stop_after=5))
    again = Recorder()
    make(tmp_path / "parts", listener=again)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))

    assert again.stages == [("conversations", 24, 24), ("updates", 12, 5)]
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name


def test_training_goes_on_from_a_published_head(tmp_path: Path) -> None:
    """It begins where that head stands, keeps its vocabulary, and the card names it."""
    report = make(tmp_path / "head", replace(RECIPE, updates=1), start_from=TINY_HEAD)
    begun = load_file(TINY_HEAD / "model.safetensors")
    made = load_file(tmp_path / "head" / "model.safetensors")

    assert (report.before.accepted_per_step or 0) > 0.3
    assert torch.equal(begun["d2t"], made["d2t"])
    assert not torch.equal(begun["lm_head.weight"], made["lm_head.weight"])
    assert "| began as | tiny-eagle3 |" in (tmp_path / "head" / "README.md").read_text()


def test_another_recipe_does_not_go_on_in_a_begun_folder(tmp_path: Path) -> None:
    """The error names the options that differ, and nothing is overwritten."""
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "head", listener=Recorder(stop_after=1))
    kept = (tmp_path / "head" / "training" / "recipe.json").read_text()

    with pytest.raises(UsageError, match="begun with another levels, seed"):
        make(tmp_path / "head", replace(RECIPE, levels=3, seed=9))
    assert (tmp_path / "head" / "training" / "recipe.json").read_text() == kept
    assert json.loads(kept)["levels"] == RECIPE.levels


def test_a_folder_with_something_else_is_not_taken(tmp_path: Path) -> None:
    """A head is begun in a new or empty folder."""
    (tmp_path / "mine.txt").write_text("keep")

    with pytest.raises(UsageError, match="not empty"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"aux_layer_ids": None}, CheckpointError, "not three different layers"),
        ({"aux_layer_ids": (1, 2, 9)}, UsageError, "auxiliary layer 9: expected 1 to 4"),
        ({"draft_vocab_size": 1}, UsageError, "draft vocabulary of 1; expected at least 2"),
    ],
)
def test_what_can_not_be_a_head_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    """The folder is not even made."""
    with pytest.raises(error, match=message):
        make(tmp_path / "head", replace(RECIPE, **changes))  # type: ignore[arg-type]  # on purpose

    assert not (tmp_path / "head").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("levels", 0), ("held_out_share", 1.5), ("matrix_rate", 0.0)]
)
def test_a_recipe_checks_itself(name: str, value: float) -> None:
    """Impossible numbers are refused under the name of their option."""
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} is"):
        replace(RECIPE, **{name: value})  # type: ignore[arg-type]  # on purpose
