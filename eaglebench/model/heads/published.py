"""A head as it lies in a folder: config and tensors, recognised and in place, without a target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.checkpoint import PlacedTensors, place, read_tensors
from eaglebench.model.heads.aux_layers import AuxLayers, resolve_aux_layers, written_ids
from eaglebench.model.heads.config import (
    NESTED,
    HeadConfig,
    flat_fields,
    parse_config,
    read_raw_config,
)
from eaglebench.model.heads.format import (
    Algorithm,
    HeadFormat,
    check_layers,
    feeds_normed,
    recognise_algorithm,
    recognise_format,
    refuse_other_kinds,
)
from eaglebench.model.heads.overrides import check_effect, overridden, say
from eaglebench.model.heads.places import (
    IGNORED,
    LM_HEAD,
    OF_EAGLE3,
    check_dtypes,
    check_flags,
    places_of,
)

_ASK_FOR_TENSORS = (
    *("norm_before_fc", "fc_norm", "use_aux_norm", "num_aux_hidden_states", "draft_vocab_size"),
    *("vocab_size", "architectures", "speculators_model_type"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedHead:
    """What a folder holds.

    Attributes:
        path: the folder.
        raw: its `config.json` as it stands, with what the user overruled.
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

    @property
    def is_eagle3(self) -> bool:
        """Whether it works with features of its own."""
        return self.algorithm is Algorithm.EAGLE3

    def aux_layers(self, num_layers: int | None, given: Sequence[int] | None = None) -> AuxLayers:
        """The states that feed it; see `resolve_aux_layers`."""
        return resolve_aux_layers(self.config, self.algorithm, self.form, num_layers, given)


def read_published(
    path: Path | str, draft_config: Mapping[str, Any] | None = None
) -> PublishedHead:
    """Read a folder, some fields of its config said otherwise by `draft_config`.

    Raises:
        CheckpointError: config or tensors are missing, contradict each other, or ask for what is
            not computed here.
        UsageError: a field that is overruled is unknown, or has no effect on this head.
    """
    folder, changes = Path(path), draft_config or {}
    file = folder / "config.json"
    raw = overridden(read_raw_config(folder), changes)
    tensors = read_tensors(folder)
    fields = flat_fields(raw, file)
    for said in (fields, raw.get(NESTED) or {}):
        refuse_other_kinds(said, tensors)
    config = parse_config(raw, file)
    algorithm = recognise_algorithm(raw, tensors)
    if algorithm is Algorithm.EAGLE:
        unused = (*OF_EAGLE3, "draft_vocab_size", "tie_word_embeddings", "use_aux_hidden_state")
        check_effect(changes, unused, "an EAGLE-1")
    form = recognise_format(raw, tensors, algorithm)
    copied = check_layers(config.num_hidden_layers, tensors)
    placed = _place(tensors, config, algorithm)
    check_dtypes(placed.tensors)
    check_flags(config, placed.tensors, algorithm, form)
    is_settled = config.norms_each or "norm_output" in changes
    is_normed, doubt = feeds_normed(config.norm_output, form, is_settled=is_settled)
    otherwise = say(changes) if changes else None
    found = [text for text in (otherwise, copied, doubt) if text]
    found += _doubts(config, algorithm, form, placed)
    return PublishedHead(
        path=folder,
        raw=raw,
        config=config,
        algorithm=algorithm,
        form=form,
        placed=placed,
        feeds_normed=is_normed,
        warnings=tuple(found),
    )


def _place(
    tensors: Mapping[str, Tensor], config: HeadConfig, algorithm: Algorithm
) -> PlacedTensors:
    """Tensors in their places; where they don't fit, what the config asks for is said as well."""
    required, optional = places_of(config, algorithm)
    try:
        return place(tensors, required=required, optional=optional, ignored=IGNORED)
    except CheckpointError as error:
        asked = {name: getattr(config, name) for name in _ASK_FOR_TENSORS}
        asked |= {"use_aux_hidden_state": config.takes_aux, **written_ids(config)}
        said = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
        message = f"{error.message}; config.json asks for {algorithm} with {said}"
        raise CheckpointError(message, hint=error.hint) from error


def _doubts(
    config: HeadConfig, algorithm: Algorithm, form: HeadFormat, placed: PlacedTensors
) -> Iterator[str]:
    """What projects would read differently."""
    inner, outer = config.rope_block.get("rope_theta"), config.rope_theta
    if inner is not None and outer is not None and float(inner) != outer:
        yield (
            f"rope_theta is {outer:g} at the top level and {float(inner):g} beside the rotary type; the "
            "latter is used, as transformers does"
        )
    if algorithm is not Algorithm.EAGLE3:
        return
    if form is HeadFormat.SPECULATORS and config.norm_before_residual is None:
        yield (
            "norm_before_residual is not given and read as false, as speculators does; "
            "vLLM would read true"
        )
    if config.tie_word_embeddings and LM_HEAD in placed.tensors:
        yield (
            "tie_word_embeddings is true, yet the file has an lm_head; that is used, SGLang would "
            "use the embeddings"
        )
