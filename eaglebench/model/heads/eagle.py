"""The two kinds of heads, made from what was read: a layer over what the target knows and next tokens.

EAGLE-1 and EAGLE-2 foretell the target's next state:

    f_i = the target's hidden state behind its final norm, what its lm_head sees
    x = fc([embed(t_{i+1}) ; f_i])
    h = x + attention(x)                                   no input norm
    h = h + mlp(post_attention_layernorm(h))               the next level's f, not normed
    logits = the target's lm_head(h)

fc has a bias in some files and none in others. Embeddings and lm_head are the target's unless the
file brings its own. Source: EAGLE (arXiv:2401.15077) and its published code (`cnets1.py`,
SafeAILab/EAGLE).

EAGLE-3 works with features of its own:

    g = fc([a_low ; a_mid ; a_high])                       features of the target, once a slot
    x = [input_layernorm(embed(t_{i+1})) ; hidden_norm(g)]
    h = g + attention(x)
    h = h + mlp(post_attention_layernorm(h))               the next level's g, not normed
    logits = lm_head(norm(h))                              over the draft's own vocabulary; the
                                                           target's where the file has none

Variants that configs ask for:

    norm_before_fc        g = fc(input_norm([a_low ; a_mid ; a_high]))
    fc_norm               g = fc([norm_0(a_low) ; norm_1(a_mid) ; norm_2(a_high)])
    norm_before_residual  h = hidden_norm(g) + attention(x)
    norm_output           norm(h) is the next level's g; by project, see `format.feeds_normed`
    use_aux_hidden_state  false: g is the target's state behind its final norm, without fc

Source: EAGLE-3 (arXiv:2503.01840) and its published code (`cnets.py`, SafeAILab/EAGLE); the norms
of EAGLE 3.1 (arXiv:2605.09992).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.aux_layers import count_aux
from eaglebench.model.heads.embeddings import compare, describe, doubt
from eaglebench.model.heads.fit import facts_of, fit_to, id_table
from eaglebench.model.heads.format import Algorithm
from eaglebench.model.heads.head import TARGETS_EMBEDDINGS, DraftHead, LoadReport
from eaglebench.model.heads.layer import HeadLayer, on_target, rms_norm
from eaglebench.model.heads.places import (
    EMBEDDING,
    FINAL_NORM,
    JOINED_NORM,
    LAYER,
    LM_HEAD,
    state_norm,
)
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.linear import linear
from eaglebench.model.target import Target

TARGETS_LM_HEAD = "the target's lm_head"
TIED = "the embeddings, as tie_word_embeddings asks"


class _EagleHead:
    """What both kinds have; implements `DraftHead`."""

    algorithm: Algorithm

    def __init__(self, published: PublishedHead, target: Target, report: LoadReport) -> None:
        weights = on_target(published.placed.tensors, target)
        self.config = published.config
        self.report = report
        self.target = target
        self.attention_backend = target.attention_backend
        self.aux_layer_ids = report.aux_layer_ids
        self.max_positions = published.config.max_position_embeddings
        self.layer = HeadLayer(published.config, weights, target)
        self._weights = {name: each for name, each in weights.items() if "_proj." not in name}
        self._fc, self._fc_bias = weights.get("fc.weight"), weights.get("fc.bias")
        self._embedding = weights.get(EMBEDDING, target.embedding.weight)
        self._lm_head = weights.get(LM_HEAD)
        self.draft_vocab_size = target.vocab_size if self._lm_head is None else len(self._lm_head)

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool for the head's one layer, over the same slot ids as the target's."""
        return self.layer.make_pool(num_slots, fill)

    @torch.inference_mode()
    def fuse(self, aux: Tensor) -> Tensor:
        """Features [num_tokens, hidden] from the target's [num_tokens, num_aux * hidden]."""
        return aux

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """Hidden states [num_tokens, hidden]; see `DraftHead.forward`."""
        inputs, residual = self._inputs(F.embedding(token_ids, self._embedding), features)
        return self._features(self.layer.forward(inputs, residual, positions, layout, pool))

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_rows, draft_vocab] logits of hidden states that `forward` returned."""
        normed = self._in_front_of_lm_head(hidden)
        if self._lm_head is None:
            return self.target.lm_head_logits(normed)
        return linear(normed, self._lm_head)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids [n] of draft ids [n]: themselves where the vocabulary is the target's."""
        return draft_ids

    def _inputs(self, embedded: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """What the layer attends to, and what that is added to."""
        raise NotImplementedError

    def _features(self, hidden: Tensor) -> Tensor:
        """The next level's features."""
        return hidden

    def _in_front_of_lm_head(self, hidden: Tensor) -> Tensor:
        return hidden


class Eagle1Head(_EagleHead):
    """A loaded EAGLE-1 or EAGLE-2 head; its features are the target's state as it is."""

    algorithm = Algorithm.EAGLE

    def _inputs(self, embedded: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([embedded, features], dim=-1)
        inputs = linear(joined, self._weights["fc.weight"], self._fc_bias)
        return inputs, inputs


class Eagle3Head(_EagleHead):
    """A loaded EAGLE-3 head."""

    algorithm = Algorithm.EAGLE3

    def __init__(self, published: PublishedHead, target: Target, report: LoadReport) -> None:
        super().__init__(published, target, report)
        config, weights = self.config, self._weights
        table, warning = id_table(published, facts_of(target))
        if warning:
            report.warnings.append(warning)
        self.draft_vocab_size = len(table)
        self._target_ids = table.to(target.device)
        self._feeds_normed = published.feeds_normed
        self._joined_norm = weights.get(JOINED_NORM)
        num_norms = count_aux(config) if config.norms_each else 0
        self._state_norms = [weights[state_norm(index)] for index in range(num_norms)]
        self._token_norm = weights[f"{LAYER}input_layernorm.weight"]
        self._feature_norm = weights[f"{LAYER}hidden_norm.weight"]
        self._norm = weights[FINAL_NORM]
        if config.tie_word_embeddings and self._lm_head is None:
            self._lm_head = self._embedding

    @torch.inference_mode()
    def fuse(self, aux: Tensor) -> Tensor:
        """Features [num_tokens, hidden] from the target's [num_tokens, num_aux * hidden]."""
        if self._joined_norm is not None:
            aux = self._normed(aux, self._joined_norm)
        if self._state_norms:
            parts = aux.chunk(len(self._state_norms), dim=-1)
            aux = torch.cat(list(map(self._normed, parts, self._state_norms)), dim=-1)
        return aux if self._fc is None else linear(aux, self._fc, self._fc_bias)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids [n] of draft ids [n], by `d2t`."""
        return self._target_ids.index_select(0, draft_ids)

    def _inputs(self, embedded: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        normed = self._normed(features, self._feature_norm)
        inputs = torch.cat([self._normed(embedded, self._token_norm), normed], dim=-1)
        return inputs, normed if self.config.norm_before_residual else features

    def _features(self, hidden: Tensor) -> Tensor:
        return self._normed(hidden, self._norm) if self._feeds_normed else hidden

    def _in_front_of_lm_head(self, hidden: Tensor) -> Tensor:
        return hidden if self._feeds_normed else self._normed(hidden, self._norm)

    def _normed(self, rows: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(rows, weight, self.config.rms_norm_eps)


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
