"""Whether a head fits a target: widths, vocabularies, embeddings.

Vocabularies are often padded, and not always to the same size. Sizes that differ by no more than a
padding are one vocabulary; tensors over it are then cut or filled up to the target's.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.heads.aux_layers import AuxLayers, count_aux
from eaglebench.model.heads.places import EMBEDDING, LM_HEAD, check_shapes
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.target import Target
from eaglebench.model.vocabulary import is_padding, target_id_table

OWN_EMBEDDINGS = "a head of another width than its target must bring embeddings of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What a head has to fit, known from a target's config alone."""

    num_layers: int
    hidden_size: int
    vocab_size: int


def facts_of(target: Target) -> TargetFacts:
    """The facts of a loaded target."""
    return _facts(target.config)


def read_facts(folder: Path) -> TargetFacts:
    """The facts of a target in a folder, by its config; a UsageError if that can't be read."""
    try:
        config = AutoConfig.from_pretrained(str(folder)).get_text_config()
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(
            f"can't read the config of a target from {folder}: {error}",
            hint="give an asset name (eaglebench assets list), a folder or a Hub id",
        ) from error
    return _facts(config)


def _facts(config: Any) -> TargetFacts:
    return TargetFacts(
        num_layers=int(config.num_hidden_layers),
        hidden_size=int(config.hidden_size),
        vocab_size=int(config.vocab_size),
    )


def fit_to(head: PublishedHead, aux: AuxLayers, target: TargetFacts) -> PublishedHead:
    """The head with tensors over the target's vocabulary, held against the target.

    Raises:
        CheckpointError: they don't fit; both numbers are named.
    """
    config, tensors = head.config, dict(head.placed.tensors)
    given = config.target_hidden_size
    if given is not None and given != target.hidden_size:
        raise CheckpointError(
            f"the head is made for a target of hidden size {given}, the target has "
            f"{target.hidden_size} (target_hidden_size)"
        )
    warnings = _check_vocabulary(config.vocab_size, target.vocab_size)
    _check_width(head, target)
    num_aux = len(aux.ids) if aux.ids is not None else count_aux(config)
    check_shapes(tensors, config, head.algorithm, num_aux=num_aux, target_hidden=target.hidden_size)
    _check_lm_head(head, target)
    _check_embeddings(tensors.get(EMBEDDING), config.hidden_size, target)
    if EMBEDDING in tensors:
        tensors[EMBEDDING] = _resized(tensors[EMBEDDING], target.vocab_size)
    if LM_HEAD in tensors and "d2t" not in tensors:
        tensors[LM_HEAD] = tensors[LM_HEAD][: target.vocab_size]
    placed = replace(head.placed, tensors=tensors)
    return replace(head, placed=placed, warnings=(*head.warnings, *warnings))


def id_table(head: PublishedHead, target: TargetFacts) -> tuple[Tensor, str | None]:
    """[draft_vocab] int64 target id of every draft id of a head that fits, and a warning if due."""
    tensors = head.placed.tensors
    rows = len(tensors[LM_HEAD]) if LM_HEAD in tensors else target.vocab_size
    return target_id_table(
        tensors.get("d2t"),
        tensors.get("t2d"),
        draft_vocab_size=rows,
        vocab_size=target.vocab_size,
    )


def _check_vocabulary(mine: int, theirs: int) -> tuple[str, ...]:
    """Nothing, or the warning that two sizes are taken as one."""
    if mine == theirs:
        return ()
    sizes = f"the head is made for a vocabulary of {mine}, the target has {theirs}"
    if not is_padding(mine, theirs):
        raise CheckpointError(
            sizes, hint="the head belongs to another model, or its vocab_size is wrong"
        )
    return (f"{sizes}; taken as one vocabulary, padded",)


def _resized(weight: Tensor, rows: int) -> Tensor:
    """A row for each id of the target; ids of padding only it has get zeros."""
    if len(weight) >= rows:
        return weight[:rows]
    return torch.cat([weight, weight.new_zeros(rows - len(weight), weight.shape[1])])


def _check_width(head: PublishedHead, target: TargetFacts) -> None:
    """Where states of the target go on as they are, the head has to be as wide."""
    hidden = head.config.hidden_size
    if hidden == target.hidden_size:
        return
    reason = None
    if not head.is_eagle3:
        reason = "an EAGLE-1 head takes and gives states of its target"
    elif not head.config.takes_aux:
        reason = "without auxiliary layers its features are states of the target"
    if reason:
        raise CheckpointError(
            f"the head is {hidden} wide, the target {target.hidden_size}; {reason}"
        )


def _check_lm_head(head: PublishedHead, target: TargetFacts) -> None:
    """A head without one can only be of the target's width and vocabulary."""
    weight, hidden = head.placed.tensors.get(LM_HEAD), head.config.hidden_size
    if weight is None:
        if "d2t" in head.placed.tensors:
            raise CheckpointError("the head has a d2t and no lm_head; nothing can stand in for it")
        if hidden != target.hidden_size and not head.config.tie_word_embeddings:
            raise CheckpointError(
                f"the head has no lm_head and is {hidden} wide; the target's is {target.hidden_size}"
            )
        return
    rows, width = weight.shape
    given = head.config.draft_vocab_size
    if width != hidden:
        raise CheckpointError(f"lm_head is {width} wide; the head is {hidden} (hidden_size)")
    if given is not None and given != rows:
        raise CheckpointError(f"the config says draft_vocab_size {given}, lm_head has {rows} rows")
    if not head.is_eagle3 and not is_padding(rows, target.vocab_size):
        raise CheckpointError(
            f"lm_head has {rows} rows, the target's vocabulary {target.vocab_size}; an EAGLE-1 "
            "head has no reduced vocabulary"
        )


def _check_embeddings(own: Tensor | None, hidden: int, target: TargetFacts) -> None:
    rows, width = (target.vocab_size, target.hidden_size) if own is None else own.shape
    if width != hidden:
        raise CheckpointError(
            f"embeddings are {width} wide, the head is {hidden}", hint=OWN_EMBEDDINGS
        )
    if rows < target.vocab_size and not is_padding(rows, target.vocab_size):
        raise CheckpointError(
            f"the head embeds {rows} tokens, the target knows {target.vocab_size}"
        )
