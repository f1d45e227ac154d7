"""A head as it lies in a folder: config and tensors, recognised and in place, without a target."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglebench.model.checkpoint import PlacedTensors, place, read_tensors
from eaglebench.model.heads.config import HeadConfig, parse_config, read_raw_config
from eaglebench.model.heads.format import (
    Algorithm,
    HeadFormat,
    feeds_normed,
    recognise_algorithm,
    recognise_format,
)
from eaglebench.model.heads.places import IGNORED, LM_HEAD, check_dtypes, places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedHead:
    """What a folder holds.

    Attributes:
        path: the folder.
        raw: its `config.json` as it stands.
        config: the fields that are read from it.
        algorithm: the kind of maths.
        form: whose names and fields it uses.
        placed: its tensors by place.
        feeds_normed: whether the next level gets the state behind the final norm.
        warnings: what deserves a word.
    """

    path: Path
    raw: Mapping[str, Any]
    config: HeadConfig
    algorithm: Algorithm
    form: HeadFormat
    placed: PlacedTensors
    feeds_normed: bool
    warnings: tuple[str, ...]


def read_published(path: Path | str) -> PublishedHead:
    """Read a folder.

    Raises:
        CheckpointError: config or tensors are missing, contradict each other, or ask for what is
            not computed here.
    """
    folder = Path(path)
    raw = read_raw_config(folder)
    config = parse_config(raw, folder / "config.json")
    tensors = read_tensors(folder)
    algorithm = recognise_algorithm(raw, tensors)
    form = recognise_format(raw, tensors, algorithm)
    places = places_of(config, algorithm)
    placed = place(tensors, required=places.required, optional=places.optional, ignored=IGNORED)
    check_dtypes(placed.tensors)
    is_normed, warning = feeds_normed(config.norm_output, form)
    return PublishedHead(
        path=folder,
        raw=raw,
        config=config,
        algorithm=algorithm,
        form=form,
        placed=placed,
        feeds_normed=is_normed,
        warnings=(*([warning] if warning else []), *_doubts(raw, algorithm, form, placed)),
    )


def _doubts(
    raw: Mapping[str, Any], algorithm: Algorithm, form: HeadFormat, placed: PlacedTensors
) -> Iterator[str]:
    """What projects would read differently."""
    if algorithm is not Algorithm.EAGLE3:
        return
    if form is HeadFormat.SPECULATORS and raw.get("norm_before_residual") is None:
        yield (
            "norm_before_residual is not given and read as false, as speculators does; "
            "vLLM would read true"
        )
    if raw.get("tie_word_embeddings") and LM_HEAD in placed.tensors:
        yield (
            "tie_word_embeddings is true, yet the file has an lm_head; that is used, SGLang would "
            "use the embeddings"
        )
