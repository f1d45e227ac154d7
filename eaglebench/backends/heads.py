"""Heads looked at and converted without running them; targets are known by their config alone."""

import json
from pathlib import Path

from eaglebench.contracts.head_report import HeadReport, HeadTensor
from eaglebench.model.heads.aux_layers import resolve_aux_layers
from eaglebench.model.heads.conversion import convert, save_converted
from eaglebench.model.heads.fit import check_fit, id_table, read_facts
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.loading import borrowed
from eaglebench.model.heads.places import LM_HEAD
from eaglebench.model.heads.published import PublishedHead, read_published
from eaglebench.model.heads.written_config import Verifier


def inspect_head(folder: Path, target: Path | None) -> HeadReport:
    """What lies in a head's folder, held against a target where one is given.

    Raises:
        UsageError: it is no head, or does not fit.
    """
    head = read_published(folder)
    facts = read_facts(target) if target else None
    aux = resolve_aux_layers(
        head.config, head.algorithm, head.form, facts.num_layers if facts else None
    )
    warnings = [*head.warnings, *([aux.warning] if aux.warning else [])]
    rows = len(head.placed.tensors[LM_HEAD]) if LM_HEAD in head.placed.tensors else None
    if facts is not None:
        check_fit(head, aux, facts)
        table, warning = id_table(head, facts)
        rows = len(table)
        warnings += [warning] if warning else []
    return HeadReport(
        path=str(folder),
        form=head.form,
        algorithm=head.algorithm,
        target=str(target) if target else None,
        fields=head.config.model_dump(mode="json", exclude_unset=True),
        aux_written=aux.written,
        aux_counting=aux.counting,
        aux_layer_ids=aux.ids,
        vocab_size=facts.vocab_size if facts else head.config.vocab_size,
        draft_vocab_size=rows,
        has_id_table="d2t" in head.placed.tensors,
        feeds_normed=head.feeds_normed,
        max_positions=head.config.max_position_embeddings,
        tensors=_tensors(head),
        borrowed=borrowed(head),
        ignored=head.placed.ignored,
        warnings=tuple(warnings),
    )


def convert_head(
    folder: Path, out: Path, form: str, target: Path | None, target_name: str | None
) -> HeadReport:
    """Write a head in another format into `out`, and report what lies there.

    Raises:
        UsageError: it is no head, does not fit the target, or the format can't say what it is.
        StorageError: it can't be written.
    """
    head = read_published(folder)
    facts = read_facts(target) if target else None
    if facts is not None:
        aux = resolve_aux_layers(head.config, head.algorithm, head.form, facts.num_layers)
        check_fit(head, aux, facts)
    verifier = Verifier(target_name, _architectures(target)) if target else Verifier()
    save_converted(convert(head, HeadFormat(form), target=facts, verifier=verifier), out)
    return inspect_head(out, target)


def _tensors(head: PublishedHead) -> tuple[HeadTensor, ...]:
    return tuple(
        HeadTensor(
            place=place,
            source=head.placed.sources[place],
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
        )
        for place, tensor in head.placed.tensors.items()
    )


def _architectures(folder: Path) -> tuple[str, ...]:
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return tuple(raw.get("architectures") or ())
