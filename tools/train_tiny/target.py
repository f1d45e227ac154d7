"""The byte-level target and its training."""

import random

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from eaglebench.training.trainer import Optimizers
from tools.train_tiny.batches import make_batch
from tools.train_tiny.rates import RATES
from tools.train_tiny.tokens import BOS, EOS, VOCAB_SIZE

HIDDEN, MLP, HEADS, KV_HEADS, LAYERS = 96, 224, 4, 2, 4


def make_target(seed: int) -> LlamaForCausalLM:
    """An untrained target."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=HIDDEN,
        intermediate_size=MLP,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=EOS,
    )
    return LlamaForCausalLM(config)


def train_target(model: LlamaForCausalLM, num_steps: int, seed: int) -> float:
    """Next-byte prediction; returns the share of answer bytes it guesses on new text."""
    rng = random.Random(seed)
    optimizers = Optimizers(model, num_steps, RATES)
    for step in range(1, num_steps + 1):
        loss, right = target_loss(model, *make_batch(rng))
        optimizers.step(loss)
        if step % 25 == 0:
            print(f"target {step}/{num_steps} loss {loss.item():.3f} right {right:.3f}", flush=True)
    with torch.no_grad():
        return target_loss(model, *make_batch(random.Random(seed + 1), 64))[1]


def target_loss(model: LlamaForCausalLM, ids: Tensor, weight: Tensor) -> tuple[Tensor, float]:
    """Weighted cross-entropy, and the share of answer bytes that are guessed."""
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    truth, weight = ids[:, 1:], weight[:, 1:]
    losses = F.cross_entropy(logits.transpose(1, 2), truth, reduction="none")
    right = (logits.argmax(-1) == truth)[weight == 1.0].float().mean()
    return (losses * weight).sum() / weight.sum(), float(right)
