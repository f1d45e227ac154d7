"""The same slots through a loaded head and through the plain version: an extend, then levels."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from tests.checkpoints import HIDDEN, VOCAB, make_model
from tests.plain_heads import PlainHead
from tests.plain_reading import PlainRead, read_plainly

CPU = torch.device("cpu")
NUM_TOKENS = 11
NUM_LEVELS = 2
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
SLOTS = (np.random.default_rng(0).permutation(NUM_TOKENS + NUM_LEVELS) + 1).astype(np.int64)


def make_target(dtype: torch.dtype = torch.float64, **changes: Any) -> Target:
    """A target of six layers."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=dtype, **changes))


def random_ids(count: int = NUM_TOKENS + NUM_LEVELS) -> Tensor:
    """Tokens after each slot."""
    return torch.randint(0, VOCAB, (count,), generator=torch.Generator().manual_seed(2))


def states_of(target: Target, wanted: tuple[int, ...]) -> Tensor:
    """[NUM_TOKENS, len(wanted) * hidden] states of the target over random tokens."""
    layout = make_layout([LayoutRow(SLOTS[:NUM_TOKENS], NUM_TOKENS)], device=CPU, backend="loop")
    output = target.forward(
        random_ids(NUM_TOKENS),
        torch.arange(NUM_TOKENS),
        layout,
        target.make_pool(32),
        torch.tensor([0]),
        wanted,
    )
    assert output.aux is not None
    return output.aux


def run_head(head: DraftHead, aux: Tensor, pieces: list[int]) -> tuple[Tensor, Tensor, KVPool]:
    """Hidden states, logits and pool after the extend in pieces and some levels."""
    ids, pool = random_ids(), head.make_pool(32, fill=float("nan"))
    hidden: list[Tensor] = []
    start = 0
    for size in [*pieces, *[1] * NUM_LEVELS]:
        end = start + size
        features = head.fuse(aux[start:end]) if start < NUM_TOKENS else hidden[-1][-1:]
        layout = make_layout([LayoutRow(SLOTS[:end], size)], device=CPU, backend="loop")
        hidden.append(
            head.forward(ids[start:end], features, torch.arange(start, end), layout, pool)
        )
        start = end
    joined = torch.cat(hidden)
    return joined, head.logits(joined), pool


def run_plain3(plain: PlainHead, embedding: Tensor, aux: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, logits and keys of the same slots."""
    embedded = embedding[random_ids()]
    features = plain.fuse3(list(aux.chunk(aux.shape[-1] // HIDDEN, dim=-1)))
    hidden, logits = plain.run3(embedded[:NUM_TOKENS], features)
    for count in range(NUM_TOKENS + 1, NUM_TOKENS + NUM_LEVELS + 1):
        features = torch.cat([features, hidden[-1:]])
        hidden, logits = plain.run3(embedded[:count], features)
    return hidden, logits, plain.keys(plain.inputs3(embedded, features))


def run_plain1(plain: PlainHead, target: Target, states: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states and logits of the same slots; what the head lacks is the target's."""
    embedding = plain.weights.get("embed_tokens.weight", target.embedding.weight)
    lm_head = plain.weights.get("lm_head.weight", target.model.get_output_embeddings().weight)
    embedded = embedding[random_ids()]
    hidden, logits = plain.run1(embedded[:NUM_TOKENS], states, lm_head)
    for count in range(NUM_TOKENS + 1, NUM_TOKENS + NUM_LEVELS + 1):
        states = torch.cat([states, hidden[-1:]])
        hidden, logits = plain.run1(embedded[:count], states, lm_head)
    return hidden, logits


def assert_close(got: Tensor, expected: Tensor) -> None:
    """Equal within what the dtype allows."""
    assert got.dtype == expected.dtype
    assert torch.allclose(got, expected, atol=TOLERANCE[got.dtype], rtol=0)


# --- a folder against the plain reading of it -------------------------------------------------


def read_against(folder: Path, target: Target) -> PlainRead:
    """The plain reading of a folder, over a target's weights."""
    return read_plainly(
        folder,
        target.num_layers,
        target.embedding.weight,
        target.model.get_output_embeddings().weight,
        target.vocab_size,
    )


def assert_as_written(head: DraftHead, folder: Path, target: Target, tolerance: float) -> None:
    """A loaded head takes the states, gives the logits and stops where its raw config says."""
    read = read_against(folder, target)
    assert head.aux_layer_ids == read.aux_layer_ids
    assert head.max_positions == read.max_positions
    drafted = torch.arange(head.draft_vocab_size)
    assert torch.equal(head.target_ids(drafted), read.target_ids)

    aux = states_of(target, read.aux_layer_ids)
    hidden, logits, _ = run_head(head, aux, [NUM_TOKENS])
    if read.is_eagle1:
        expected = run_plain1(read.head, target, aux)
    else:
        expected = run_plain3(read.head, read.embedding, aux)[:2]

    for got, wanted in zip((hidden, logits), expected, strict=True):
        assert torch.allclose(got, wanted, atol=tolerance, rtol=tolerance)
