"""Training-time test of the head against the target's own choices."""

import random

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaForCausalLM

from eaglebench.model.heads.config import HeadConfig
from eaglebench.training.trainer import Optimizers
from eaglebench.training.training_time_test import PastLevel, TrainableHead
from tools.train_tiny.batches import make_batch
from tools.train_tiny.rates import RATES
from tools.train_tiny.target import HEADS, HIDDEN, KV_HEADS, MLP
from tools.train_tiny.tokens import DRAFT_TOKEN_IDS, VOCAB_SIZE

AUX_LAYER_IDS = (1, 2, 3)
NUM_LEVELS = 2
DECAY = 0.3
"""Trained far enough to copy and no further: a head that errs now and then shows more faults."""


def make_head(seed: int) -> TrainableHead:
    """An untrained head."""
    torch.manual_seed(seed)
    config = HeadConfig(
        hidden_size=HIDDEN,
        intermediate_size=MLP,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        vocab_size=VOCAB_SIZE,
        rms_norm_eps=1e-5,
    )
    return TrainableHead(config, len(AUX_LAYER_IDS), len(DRAFT_TOKEN_IDS))


def train_head(
    model: LlamaForCausalLM, head: TrainableHead, num_steps: int, seed: int
) -> list[float]:
    """Train; returns the match with the target's argmax by level on new text."""
    rng = random.Random(seed)
    optimizers = Optimizers(head, num_steps, RATES)
    for step in range(1, num_steps + 1):
        loss, matches = head_loss(model, head, *make_batch(rng))
        optimizers.step(loss)
        if step % 25 == 0:
            shown = " ".join(f"{m:.3f}" for m in matches)
            print(f"head {step}/{num_steps} loss {loss.item():.3f} match {shown}", flush=True)
    with torch.no_grad():
        return head_loss(model, head, *make_batch(random.Random(seed + 1), 64))[1]


def head_loss(
    model: LlamaForCausalLM, head: TrainableHead, ids: Tensor, weight: Tensor
) -> tuple[Tensor, list[float]]:
    """Decayed cross-entropy against the target's distribution over all levels."""
    aux, logits = _features_of(model, ids)
    drafted = torch.tensor(DRAFT_TOKEN_IDS)
    embed = model.get_input_embeddings()
    rows = ids.shape[1] - 1 - NUM_LEVELS
    features = head.fc(aux[:, :rows])
    past: list[PastLevel] = []
    total = torch.zeros(())
    matches = []
    for level in range(NUM_LEVELS):
        positions = torch.arange(level, level + rows)[None]
        cos, sin = model.model.rotary_emb(features, position_ids=positions)
        seen = slice(1 + level, 1 + level + rows)
        with torch.no_grad():
            embedded = embed(ids[:, seen])
        features = head.step(embedded, features, cos[:, None], sin[:, None], past)
        predicted = head.lm_head(head.norm(features))
        truth, mask = logits[:, seen], weight[:, seen]
        wanted = F.softmax(truth[..., drafted], -1)
        losses = -(wanted * F.log_softmax(predicted, -1)).sum(-1)
        total = total + DECAY**level * (losses * mask).sum() / mask.sum()
        guessed = drafted[predicted.argmax(-1)]
        matches.append(float((guessed == truth.argmax(-1))[mask == 1.0].float().mean()))
    return total, matches


def _features_of(model: LlamaForCausalLM, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Auxiliary hidden states [B, T, 3 * hidden] and logits [B, T, vocab]."""
    with torch.no_grad():
        out = model(input_ids=ids, use_cache=False, output_hidden_states=True)
    # hidden_states[k] is what enters decoder layer k
    return torch.cat([out.hidden_states[k] for k in AUX_LAYER_IDS], -1), out.logits
