"""From a target to a head in a folder: conversations, corpus, vocabulary, updates, card.

Everything that takes long is kept in `out/training` as it is made, so that the same command goes on
where an earlier one was stopped:

    training/recipe.json           what it was begun with
    training/conversations.jsonl   as they were written
    training/studies/              what the target computed of each conversation
    training/checkpoint.pt         weights and optimizer
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.utils.logging import disable_progress_bar

from eaglebench.errors import StorageError, UsageError
from eaglebench.files import give_usual_rights
from eaglebench.model.device import resolve_device
from eaglebench.model.heads.layer import make_rotary
from eaglebench.model.target import Target
from eaglebench.model.tokenizer import HubTokenizer
from eaglebench.progress import Progress
from eaglebench.training.blueprint import (
    Blueprint,
    blueprint_of,
    check_shape,
    new_blueprint,
    published_tensors,
)
from eaglebench.training.card import write_card
from eaglebench.training.conversation import (
    ChatFrame,
    Conversation,
    append_conversations,
    read_conversations,
    read_frame,
)
from eaglebench.training.corpus import (
    Corpus,
    OverlapFilter,
    choose_vocabulary,
    count_answer_tokens,
    coverage_of,
    make_corpus,
)
from eaglebench.training.openings import FIRST_TURNS, LATER_TURNS
from eaglebench.training.recipe import (
    TrainingFiles,
    TrainingMachine,
    TrainingRecipe,
    TrainingReport,
)
from eaglebench.training.teacher import Shelf, Teacher
from eaglebench.training.trainer import Trainer, load_checkpoint, save_checkpoint
from eaglebench.training.training_time_test import TrainingTimeTest, measure_acceptance
from eaglebench.training.writer import ConversationWriter, Openings


class HeadMaker:
    """Makes one head."""

    def __init__(
        self,
        files: TrainingFiles,
        recipe: TrainingRecipe,
        machine: TrainingMachine,
        listener: Progress,
    ) -> None:
        self._files, self._recipe, self._listener = files, recipe, listener
        self._work = files.out / "training"
        device = resolve_device(machine.device)
        if machine.num_threads is not None:
            torch.set_num_threads(machine.num_threads)
        self._tokenizer = HubTokenizer.load(files.target)
        self._frame: ChatFrame = read_frame(self._tokenizer)
        disable_progress_bar()
        self._target = Target.load(files.target, dtype=getattr(torch, machine.dtype), device=device)
        self._started = files.start_from and blueprint_of(files.start_from, self._target)
        check_shape(self._target, recipe)
        _claim(self._work, files, recipe)

    def make(self) -> TrainingReport:
        """Do what is left to do, and write the head.

        Raises:
            UsageError: something given does not fit.
            StorageError: the folder can't be written.
        """
        self._write_conversations()
        corpus = self._corpus()
        blueprint, coverage = self._blueprint(corpus)
        device = self._target.device
        shelf = Shelf(
            Teacher(self._target, blueprint.aux_layer_ids, blueprint.target_ids),
            self._work / "studies" if self._files.keeps_studies else None,
        )
        exam = TrainingTimeTest(
            make_rotary(blueprint.config, device),
            blueprint.target_ids.to(device),
            self._recipe.levels,
            self._target.dtype,
        )
        trainer = Trainer(blueprint.build(self._recipe.seed, device), shelf, exam, self._recipe)
        before = measure_acceptance(trainer.head, exam, shelf, corpus.held_out)
        self._train(trainer, corpus)
        after = measure_acceptance(trainer.head, exam, shelf, corpus.held_out)
        report = TrainingReport(
            folder=self._files.out,
            conversations=len(corpus.learned),
            tokens=corpus.num_tokens,
            seen_tokens=trainer.seen_tokens,
            excluded=corpus.num_excluded,
            held_out=len(corpus.held_out),
            coverage=coverage,
            before=before,
            after=after,
        )
        self._save(trainer, blueprint, report)
        return report

    # --- stages -------------------------------------------------------------------------------

    def _write_conversations(self) -> None:
        recipe, path = self._recipe, self._conversations_file
        done = {each.number for each in self._own_conversations()}
        missing = [number for number in range(recipe.num_conversations) if number not in done]
        self._listener.stage("conversations", recipe.num_conversations, len(done))
        if not missing:
            return
        openings = Openings(
            *(
                tuple(tuple(self._tokenizer.encode(text)) for text in texts)
                for texts in (FIRST_TURNS, LATER_TURNS)
            )
        )
        writer = ConversationWriter(self._target, self._frame, openings, recipe)
        for each in writer.write(iter(missing), min(recipe.batch, len(missing))):
            append_conversations(path, [each])
            self._listener.advance(1, f"{len(each.ids)} tokens")

    def _corpus(self) -> Corpus:
        overlap = OverlapFilter(self._files.excluded, self._recipe.ngram_words)
        corpus = make_corpus(
            chain(self._own_conversations(), *map(self._read, self._files.conversations)),
            overlap=overlap,
            decode=self._tokenizer.decode,
            held_out_share=self._recipe.held_out_share,
            longest=self._recipe.batch_tokens,
        )
        self._listener.note(
            f"{len(corpus.learned)} conversations of {corpus.num_tokens} tokens to learn from, "
            f"{len(corpus.held_out)} held out; left out: {corpus.num_excluded} for shared words, "
            f"{corpus.num_too_long} for their length"
        )
        return corpus

    def _blueprint(self, corpus: Corpus) -> tuple[Blueprint, float]:
        target, counts = self._target, count_answer_tokens(corpus.learned)
        blueprint = self._started or new_blueprint(
            target,
            self._recipe,
            choose_vocabulary(
                counts,
                size=self._recipe.draft_vocab_size,
                vocab_size=target.vocab_size,
                always=target.stop_token_ids,
            ),
        )
        return blueprint, coverage_of(counts, blueprint.target_ids.tolist())

    def _train(self, trainer: Trainer, corpus: Corpus) -> None:
        path = self._work / "checkpoint.pt"
        if path.exists():
            trainer.restore(load_checkpoint(path))
        self._listener.stage("updates", self._recipe.updates, trainer.done)
        for update in trainer.train(corpus.learned, partial(save_checkpoint, path)):
            accepted = update.acceptance.accepted_per_step
            shown = "-" if accepted is None else f"{accepted:.2f}"
            self._listener.advance(1, f"loss {update.loss:.2f}, accepted a step {shown}")

    def _save(self, trainer: Trainer, blueprint: Blueprint, report: TrainingReport) -> None:
        out, files = self._files.out, self._files
        tensors = published_tensors(
            trainer.head, blueprint.target_ids.cpu(), self._target.vocab_size
        )
        card = write_card(
            report,
            blueprint,
            self._recipe,
            target_name=files.target_name,
            started_from=files.start_from.name if files.start_from else None,
        )
        try:
            save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
            give_usual_rights(out / "model.safetensors")
            _write(out / "config.json", json.dumps(blueprint.fields, indent=1) + "\n")
            _write(out / "README.md", card)
        except OSError as error:
            raise StorageError(f"{out} can't be written: {error.strerror}") from error

    @property
    def _conversations_file(self) -> Path:
        return self._work / "conversations.jsonl"

    def _own_conversations(self) -> Iterator[Conversation]:
        path = self._conversations_file
        return self._read(path) if path.exists() else iter(())

    def _read(self, path: Path) -> Iterator[Conversation]:
        return read_conversations(path, self._frame, self._tokenizer.encode)


def _claim(work: Path, files: TrainingFiles, recipe: TrainingRecipe) -> None:
    """Begin a folder, or go on in one that was begun with the same recipe.

    Raises:
        UsageError: it was begun with another, or holds something else.
        StorageError: it can't be written.
    """
    asked = {
        "target": files.target_name,
        "start_from": None if files.start_from is None else str(files.start_from),
        "conversations": [str(path) for path in files.conversations],
        **json.loads(json.dumps(asdict(recipe))),
    }
    path = work / "recipe.json"
    if path.exists():
        begun = json.loads(path.read_text(encoding="utf-8"))
        moved = sorted(name for name in asked if begun.get(name) != asked[name])
        if moved:
            raise UsageError(
                f"{work.parent} was begun with another {', '.join(moved)}",
                hint="give the same options to go on, or name another --output",
            )
        return
    if work.parent.exists() and any(work.parent.iterdir()):
        raise UsageError(
            f"{work.parent} is not empty and no head was begun in it", hint="name another --output"
        )
    try:
        work.mkdir(parents=True)
        _write(path, json.dumps(asked, indent=1) + "\n")
    except OSError as error:
        raise StorageError(f"{work} can't be written: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
