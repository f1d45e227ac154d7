"""Heads looked at and converted without running them; targets are known by their config alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eaglebench.files import read_json_object
from eaglebench.model.heads.eagle import borrowed, borrowed_output
from eaglebench.model.heads.embeddings import compare_with_folder, describe, doubt
from eaglebench.model.heads.fit import fit_to, id_table, read_facts
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.head import TARGETS_EMBEDDINGS
from eaglebench.model.heads.places import EMBEDDING, LM_HEAD
from eaglebench.model.heads.published import read_published
from eaglebench.training.conversion import Verifier, convert, save_converted


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadTensor:
    """One tensor: where it belongs, and how it is called and stored in the file."""

    place: str
    source: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadReport:
    """A head as it was read.

    Attributes:
        path: its folder.
        form: whose names and fields it uses.
        algorithm: EAGLE (1 and 2) or EAGLE3.
        target: the target it was held against; None where none was named.
        fields: the fields of its config that were read, as they stand or were said otherwise.
        draft_config: those that were said otherwise.
        aux_written: auxiliary layer ids in the config; None where it is silent.
        aux_counting: how those are counted.
        aux_layer_ids: states of the target that are used, in the engine's count; None where the
            target would have to be known.
        vocab_size: ids of the target.
        draft_vocab_size: ids it can propose; None where the target's lm_head is borrowed and the
            target is not known.
        has_id_table: whether `d2t` maps the one to the other.
        feeds_normed: whether the next level gets the state behind the final norm.
        max_positions: positions it was made for; None is no limit.
        window: positions its layer sees, the current one included; None is all.
        rotary: kind and base of its angles, and how many dimensions of a head are turned, in words.
        tensors: its tensors, by place.
        borrowed: places that the target fills, and with what.
        embeddings: whose are used, and how like the target's a head's own are.
        ignored: names in the file that are not needed, and why.
        warnings: what deserves a word.
    """

    path: str
    form: str
    algorithm: str
    target: str | None
    fields: Mapping[str, Any]
    draft_config: Mapping[str, Any]
    aux_written: tuple[int, ...] | None
    aux_counting: str
    aux_layer_ids: tuple[int, ...] | None
    vocab_size: int
    draft_vocab_size: int | None
    has_id_table: bool
    feeds_normed: bool
    max_positions: int | None
    window: int | None
    rotary: str
    tensors: tuple[HeadTensor, ...]
    borrowed: Mapping[str, str]
    embeddings: str
    ignored: Mapping[str, str]
    warnings: tuple[str, ...]


def inspect_head(
    folder: Path,
    target: Path | None,
    aux_layer_ids: Sequence[int] | None = None,
    draft_config: Mapping[str, Any] | None = None,
) -> HeadReport:
    """What lies in a head's folder, held against a target where one is given.

    Raises:
        UsageError: it is no head, or does not fit.
    """
    head = read_published(folder, draft_config)
    facts = read_facts(target) if target else None
    aux = head.aux_layers(facts.num_layers if facts else None, aux_layer_ids)
    tensors, warnings, table_warning = head.placed.tensors, head.warnings, None
    rows = len(tensors[LM_HEAD]) if LM_HEAD in tensors else None
    if facts is not None:
        fitted = fit_to(head, aux, facts)
        table, table_warning = id_table(fitted, facts)
        rows, warnings = len(table), fitted.warnings
    own = tensors.get(EMBEDDING)
    likeness = None if own is None or target is None else compare_with_folder(own, target)
    config, rope = head.config, head.config.rope
    rotary = (
        f"{config.rotated_width} of {config.head_width} dimensions of a head, type "
        f"{rope['rope_type']}, base {rope['rope_theta']:g}"
    )
    doubts = (aux.warning, table_warning, doubt(likeness), borrowed_output(head))
    return HeadReport(
        path=str(folder),
        form=head.form,
        algorithm=head.algorithm,
        target=str(target) if target else None,
        fields=config.model_dump(mode="json", exclude_unset=True),
        draft_config=dict(draft_config or {}),
        aux_written=aux.written,
        aux_counting=aux.counting,
        aux_layer_ids=aux.ids,
        vocab_size=facts.vocab_size if facts else config.vocab_size,
        draft_vocab_size=rows,
        has_id_table="d2t" in tensors,
        feeds_normed=head.feeds_normed,
        max_positions=config.max_position_embeddings,
        window=config.window,
        rotary=rotary,
        tensors=tuple(
            HeadTensor(
                place=place,
                source=head.placed.sources[place],
                dtype=str(tensor.dtype).removeprefix("torch."),
                shape=tuple(tensor.shape),
            )
            for place, tensor in tensors.items()
        ),
        borrowed=borrowed(head),
        embeddings=TARGETS_EMBEDDINGS if own is None else describe(likeness),
        ignored=head.placed.ignored,
        warnings=(*warnings, *(text for text in doubts if text)),
    )


def convert_head(
    folder: Path,
    out: Path,
    form: str,
    target: Path | None,
    target_name: str | None,
    aux_layer_ids: Sequence[int] | None = None,
    draft_config: Mapping[str, Any] | None = None,
) -> HeadReport:
    """Write a head in another format into `out`, and report what lies there.

    Raises:
        UsageError: it is no head, does not fit the target, or the format can't say what it is.
        StorageError: it can't be written.
    """
    head = read_published(folder, draft_config)
    facts = read_facts(target) if target else None
    verifier = Verifier()
    if target:
        raw = read_json_object(target / "config.json")
        verifier = Verifier(target_name, tuple(raw.get("architectures") or ()))
    converted = convert(
        head, HeadFormat(form), target=facts, verifier=verifier, aux_layer_ids=aux_layer_ids
    )
    save_converted(converted, out)
    report = inspect_head(out, target)
    return replace(report, warnings=(*report.warnings, *converted.warnings))
