"""From a folder and a target to a head that runs."""

from collections.abc import Sequence

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.eagle import Eagle1Head, Eagle3Head
from eaglebench.model.heads.embeddings import compare, describe, doubt
from eaglebench.model.heads.fit import facts_of, fit_to
from eaglebench.model.heads.head import TARGETS_EMBEDDINGS, DraftHead, LoadReport
from eaglebench.model.heads.places import EMBEDDING, LM_HEAD
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.target import Target

TARGETS_LM_HEAD = "the target's lm_head"
TIED = "the embeddings, as tie_word_embeddings asks"


def make_head(
    published: PublishedHead,
    target: Target,
    *,
    algorithm: str | None = None,
    aux_layer_ids: Sequence[int] | None = None,
) -> DraftHead:
    """The head that was read, over its target; dtype, device and attention follow the target.

    `algorithm` refuses a head of another kind; `aux_layer_ids` says otherwise than its config which
    states feed it.

    Raises:
        CheckpointError: it is of another kind than asked for, or does not fit the target; the
            message names both sides.
    """
    _check_algorithm(published, algorithm)
    aux = published.aux_layers(target.num_layers, aux_layer_ids)
    assert aux.ids is not None
    published = fit_to(published, aux, facts_of(target))
    own = published.placed.tensors.get(EMBEDDING)
    likeness = None if own is None else compare(own, target.embedding.weight)
    doubts = (aux.warning, doubt(likeness), borrowed_output(published))
    report = LoadReport(
        form=published.form,
        sources=published.placed.sources | borrowed(published),
        aux_layer_ids=aux.ids,
        aux_counting=aux.counting,
        embeddings=TARGETS_EMBEDDINGS if own is None else describe(likeness),
        warnings=[*published.warnings, *(text for text in doubts if text)],
    )
    kind = Eagle3Head if published.is_eagle3 else Eagle1Head
    return kind(published, target, report)


def borrowed(published: PublishedHead) -> dict[str, str]:
    """Places that the file leaves empty: place to what is taken."""
    is_tied = published.is_eagle3 and published.config.tie_word_embeddings
    taken = {EMBEDDING: TARGETS_EMBEDDINGS, LM_HEAD: TIED if is_tied else TARGETS_LM_HEAD}
    tensors = published.placed.tensors
    return {place: source for place, source in taken.items() if place not in tensors}


def borrowed_output(published: PublishedHead) -> str | None:
    """What to say where an EAGLE-3 head, which has an lm_head of its own as a rule, has none."""
    if not published.is_eagle3 or LM_HEAD in published.placed.tensors:
        return None
    return f"the head has no lm_head; {borrowed(published)[LM_HEAD]} stands in for it"


def _check_algorithm(published: PublishedHead, wanted: str | None) -> None:
    if wanted is not None and wanted != published.algorithm:
        raise CheckpointError(
            f"--algorithm {wanted} was asked for, {published.path} holds an {published.algorithm} "
            "head",
            hint=f"use --algorithm {published.algorithm}, or name another --draft-model",
        )
