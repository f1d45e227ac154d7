"""The slow obvious version: no cache, no pages to speak of, no speculation, no batch.

Every call starts from an empty pool and computes the whole prefix in one piece, so whatever the
engine shares, chunks, batches, evicts or drafts can be held against it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.engine.stopping import StopRule, StopWatch
from eaglebench.engine.target_choices import make_sampler
from eaglebench.errors import UsageError
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout, make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import TargetOutput
from eaglebench.records.generation import FinishReason, Sampling
from eaglebench.spec.likeliest import choose_greedy
from eaglebench.spec.sampling import coin


def greedy_token(models: Models, known_ids: Sequence[int]) -> int:
    """The target's choice after `known_ids`, from one dense forward."""
    logits = dense_logits(models, known_ids)
    return int(choose_greedy(logits[-1:]).ids.item())


def dense_logits(models: Models, known_ids: Sequence[int]) -> Tensor:
    """[num_tokens, vocab] logits of one dense forward over `known_ids`."""
    count = len(known_ids)
    output = models.target.forward(
        _ids(models, known_ids),
        torch.arange(count, device=models.device),
        _dense_layout(models, count, models.target.attention_backend),
        models.target.make_pool(count),
        torch.arange(count, device=models.device),
    )
    return output.logits


def sampled_token(models: Models, known_ids: Sequence[int], sampling: Sampling) -> int:
    """The token drawn after `known_ids`, from one dense forward."""
    logits = dense_logits(models, known_ids)[-1:]
    coins = torch.tensor([coin(sampling.coin_key, len(known_ids))], dtype=torch.float64)
    return int(make_sampler(sampling).choose(logits, coins.to(logits.device)).ids.item())


def greedy_decode(
    models: Models,
    prompt_ids: Sequence[int],
    rule: StopRule,
    sampling: Sampling | None = None,
) -> tuple[list[int], FinishReason]:
    """Plain decoding, the whole prefix computed anew for every token; greedy unless drawn."""
    outputs: list[int] = []
    watch = StopWatch(rule, len(prompt_ids))
    while True:
        known = [*prompt_ids, *outputs]
        if sampling is None:
            token = greedy_token(models, known)
        else:
            token = sampled_token(models, known, sampling)
        ended = watch.cut([token])
        outputs.append(token)
        if ended.reason is not None:
            return outputs, ended.reason


def cold_target_pool(models: Models, known_ids: Sequence[int]) -> KVPool:
    """Target KV of slots 0 .. N - 1 from one cold, unchunked, uncached pass over N tokens."""
    return _cold_target(models, known_ids)[0]


def cold_draft_pool(models: Models, known_ids: Sequence[int]) -> KVPool:
    """Draft KV of slots 0 .. N - 2 from one cold, unchunked, uncached pass over N tokens.

    Slot i of the returned pool holds position i; slot i pairs token i + 1 with feature i.
    """
    if models.head is None:
        raise UsageError("there is no head, so there is no draft KV")
    num_settled = len(known_ids) - 1  # the last token has no successor yet
    _, output = _cold_target(models, known_ids[:num_settled])
    if output.aux is None:
        raise UsageError("the head asks for no hidden states")
    pool = models.head.make_pool(num_settled)
    models.head.forward(
        _ids(models, known_ids[1:]),
        models.head.fuse(output.aux),
        torch.arange(num_settled, device=models.device),
        _dense_layout(models, num_settled, models.head.attention_backend),
        pool,
    )
    return pool


def _cold_target(models: Models, token_ids: Sequence[int]) -> tuple[KVPool, TargetOutput]:
    """Pool and output of one dense forward; no logits are computed."""
    count = len(token_ids)
    pool = models.target.make_pool(count)
    output = models.target.forward(
        _ids(models, token_ids),
        torch.arange(count, device=models.device),
        _dense_layout(models, count, models.target.attention_backend),
        pool,
        torch.arange(0, device=models.device),
        aux_layer_ids=models.head.aux_layer_ids if models.head else (),
    )
    return pool, output


def _ids(models: Models, token_ids: Sequence[int]) -> Tensor:
    return torch.tensor(list(token_ids), dtype=torch.int64, device=models.device)


def _dense_layout(models: Models, count: int, backend: str) -> AttentionLayout:
    return make_layout(
        [LayoutRow(np.arange(count, dtype=np.int64), count)], device=models.device, backend=backend
    )
