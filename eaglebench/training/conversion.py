"""Writing a head of one format as another: names, tables, biases, and what can't be said.

Some engines make a bias for every matrix of a group, or for fc in any case; where a head has none
there, zeros are written, so that nothing is left as it happened to be in memory.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from eaglebench.errors import CheckpointError, StorageError, UsageError
from eaglebench.model.heads.aux_layers import resolve_aux_layers
from eaglebench.model.heads.fit import TargetFacts, fit_to
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.obstacles import aux_obstacles, head_obstacles, old_readers
from eaglebench.model.heads.places import LAYER, LM_HEAD, MLP, OUTPUT, QKV, has_bias
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.vocabulary import target_id_table
from eaglebench.training.written_config import Verifier, write_config


@dataclass(frozen=True, slots=True)
class ConvertedHead:
    """A config and tensors by their names in the file, ready to be written.

    `warnings` says what was doubtful in the head that was read, and which readers of the format
    would not do it justice.
    """

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    warnings: tuple[str, ...]


def convert(
    head: PublishedHead,
    to: HeadFormat,
    *,
    target: TargetFacts | None,
    verifier: Verifier,
    aux_layer_ids: Sequence[int] | None = None,
) -> ConvertedHead:
    """A head in another format.

    Args:
        head: what was read.
        to: the format to write.
        target: facts of its target, where they are known.
        verifier: how the target is called.
        aux_layer_ids: states that feed it, whatever its config says; None asks the config.

    Raises:
        CheckpointError: the head does not fit the target, or the format can't say what it is;
            everything that stands in the way is listed.
    """
    num_layers = target.num_layers if target else None
    aux = resolve_aux_layers(head.config, head.algorithm, head.form, num_layers, aux_layer_ids)
    if target is not None:
        fit_to(head, aux, target)
    obstacles = [*head_obstacles(head, to), *aux_obstacles(aux, to, num_layers)]
    if obstacles:
        raise CheckpointError(
            f"{head.path} can't be written as {to}, which can't say: {'; '.join(obstacles)}",
            hint=f"other formats: {', '.join(form for form in HeadFormat if form is not to)}",
        )
    tensors = _with_biases(head, to)
    if head.algorithm is Algorithm.EAGLE3:
        tensors |= _tables(head, target.vocab_size if target else head.config.vocab_size)
    config = write_config(head, to, tensors=tensors, aux=aux, verifier=verifier)
    named = {_rename(n, head.algorithm, to): t for n, t in tensors.items()}
    doubts = (aux.warning,) if aux.warning else ()
    return ConvertedHead(config, named, (*doubts, *old_readers(head, to)))


def save_converted(converted: ConvertedHead, folder: Path) -> None:
    """Write `config.json` and `model.safetensors` into a new or empty folder.

    Raises:
        UsageError: something lies there already.
        StorageError: it can't be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; expected a new folder", hint="name another one")
    tensors = {name: tensor.contiguous().clone() for name, tensor in converted.tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        text = json.dumps(converted.config, indent=2) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}") from error


def _with_biases(head: PublishedHead, to: HeadFormat) -> dict[str, Tensor]:
    """The head's tensors, with zeros where readers of the format expect a bias."""
    tensors = dict(head.placed.tensors)
    groups: list[tuple[str, ...]] = []
    if to is HeadFormat.SPECULATORS:
        groups = [(*QKV, OUTPUT), MLP]
    elif to is HeadFormat.SGLANG and head.algorithm is Algorithm.EAGLE:
        groups = [(*QKV, OUTPUT)]
        tensors.setdefault("fc.bias", _zeros(tensors, "fc"))
    elif to is HeadFormat.SGLANG:
        groups = [("fc", OUTPUT)]  # both come with the field `bias`
    for group in groups:
        if has_bias(tensors, group):
            for name in group:
                tensors.setdefault(f"{name}.bias", _zeros(tensors, name))
    return tensors


def _zeros(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    weight = tensors[f"{name}.weight"]
    return weight.new_zeros(len(weight))


def _tables(head: PublishedHead, vocab_size: int) -> dict[str, Tensor]:
    """`d2t` as offsets and `t2d` as marks, where the vocabulary is reduced."""
    given = head.placed.tensors
    if "d2t" not in given:
        return {}
    rows = len(given[LM_HEAD])
    table, _ = target_id_table(
        given["d2t"], given.get("t2d"), draft_vocab_size=rows, vocab_size=vocab_size
    )
    marked = torch.zeros(vocab_size, dtype=torch.bool)
    marked[table] = True
    return {"d2t": table - torch.arange(rows), "t2d": marked}


def _rename(place: str, algorithm: Algorithm, to: HeadFormat) -> str:
    """The name of a place in a format."""
    if algorithm is Algorithm.EAGLE3:
        # SGLang drops tensors called layers.0 without a word, vLLM knows both names
        return place if to is HeadFormat.SPECULATORS else place.replace(LAYER, "midlayer.")
    if to is HeadFormat.SPECULATORS:
        return place.replace(LAYER, "transformer.").replace("fc.", "fusion_fc.", 1)
    return place
