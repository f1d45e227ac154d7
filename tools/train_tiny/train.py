"""Train the tiny pair: a byte-level target and its EAGLE-3 head, in minutes on two cores.

    python -m tools.train_tiny.train --out eaglebench/data

Writes `tiny/` (target, tokenizer, prompts) and `tiny-eagle3/` (head in the published format).
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from tools.train_tiny.head import TrainableHead
from tools.train_tiny.text import conversation
from tools.train_tiny.tokens import EOS, VOCAB_SIZE, encode_conversation, save_tokenizer

HIDDEN, MLP, HEADS, KV_HEADS, LAYERS = 96, 224, 4, 2, 4
AUX_LAYER_IDS = (1, 2, 3)
LENGTH = 288
STEPS_TTT = 5
DECAY = 0.8
SEED = 20260101


def batch(rng: random.Random, size: int) -> tuple[Tensor, Tensor]:
    """[size, LENGTH] token ids and a loss weight for each of them."""
    ids = torch.full((size, LENGTH), EOS)
    weight = torch.zeros(size, LENGTH)
    for row in range(size):
        tokens, is_answer = encode_conversation(conversation(rng, turns=rng.randint(1, 3)))
        count = min(len(tokens), LENGTH)
        ids[row, :count] = torch.tensor(tokens[:count])
        weight[row, :count] = torch.tensor([1.0 if a else 0.2 for a in is_answer[:count]])
    return ids, weight


def make_target() -> LlamaForCausalLM:
    """An untrained target."""
    torch.manual_seed(SEED)
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
        bos_token_id=256,
        eos_token_id=257,
        pad_token_id=257,
    )
    return LlamaForCausalLM(config)


def train_target(model: LlamaForCausalLM, seconds: float) -> None:
    """Next-byte prediction until the time is up."""
    rng = random.Random(SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.01)
    started = time.monotonic()
    step = 0
    while (elapsed := time.monotonic() - started) < seconds:
        for group in optimizer.param_groups:
            warm = min(1.0, (step + 1) / 50)
            group["lr"] = 4e-3 * warm * max(0.02, 1 - elapsed / seconds)
        ids, weight = batch(rng, 16)
        logits = model(input_ids=ids, use_cache=False).logits
        losses = F.cross_entropy(
            logits[:, :-1].reshape(-1, VOCAB_SIZE), ids[:, 1:].reshape(-1), reduction="none"
        )
        flat = weight[:, 1:].reshape(-1)
        loss = (losses * flat).sum() / flat.sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"target step {step} {elapsed:.0f}s loss {loss.item():.3f}", flush=True)


def features_of(model: LlamaForCausalLM, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Auxiliary hidden states [B, T, 3 * hidden] and logits [B, T, vocab]."""
    with torch.no_grad():
        out = model(input_ids=ids, use_cache=False, output_hidden_states=True)
    # hidden_states[k] is what enters decoder layer k
    return torch.cat([out.hidden_states[k] for k in AUX_LAYER_IDS], -1), out.logits


def train_head(model: LlamaForCausalLM, head: TrainableHead, seconds: float) -> list[float]:
    """Training-time test; returns the match with the target's argmax by level on new text."""
    rng = random.Random(SEED + 1)
    optimizer = torch.optim.AdamW(head.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    started = time.monotonic()
    matches: list[float] = [0.0] * STEPS_TTT
    step = 0
    while (elapsed := time.monotonic() - started) < seconds:
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 50) * max(0.02, 1 - elapsed / seconds)
        loss, matches = head_loss(model, head, *batch(rng, 16))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            shown = " ".join(f"{m:.3f}" for m in matches)
            print(
                f"head step {step} {elapsed:.0f}s loss {loss.item():.3f} match {shown}", flush=True
            )
    with torch.no_grad():
        _, matches = head_loss(model, head, *batch(random.Random(SEED + 2), 64))
    return matches


def head_loss(
    model: LlamaForCausalLM, head: TrainableHead, ids: Tensor, weight: Tensor
) -> tuple[Tensor, list[float]]:
    """Decayed cross-entropy against the target's distribution over all levels."""
    aux, logits = features_of(model, ids)
    embed = model.get_input_embeddings()
    rows = ids.shape[1] - 1 - STEPS_TTT
    features = head.fc(aux[:, :rows])
    past: list[tuple[Tensor, Tensor]] = []
    total = torch.zeros(())
    matches = []
    for level in range(STEPS_TTT):
        positions = torch.arange(level, level + rows)[None]
        cos, sin = model.model.rotary_emb(features, position_ids=positions)
        with torch.no_grad():
            embedded = embed(ids[:, 1 + level : 1 + level + rows])
        features = head.step(embedded, features, cos[:, None], sin[:, None], past)
        predicted = head.lm_head(head.norm(features))
        truth = logits[:, 1 + level : 1 + level + rows]
        mask = weight[:, 1 + level : 1 + level + rows]
        losses = -(F.softmax(truth, -1) * F.log_softmax(predicted, -1)).sum(-1)
        total = total + DECAY**level * (losses * mask).sum() / mask.sum()
        answers = mask == 1.0
        matches.append(float((predicted.argmax(-1) == truth.argmax(-1))[answers].float().mean()))
    return total, matches


def save_pair(
    model: LlamaForCausalLM, head: TrainableHead, out: Path, matches: list[float]
) -> None:
    """Write both folders, weights in bfloat16."""
    tiny, tiny_head = out / "tiny", out / "tiny-eagle3"
    for folder in (tiny, tiny_head):
        folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(tiny)
    save_tokenizer(tiny)
    save_prompts(tiny / "prompts.jsonl")
    layer = {
        n: p for n, p in head.named_parameters() if n.split(".")[0] not in {"fc", "norm", "lm_head"}
    }
    tensors = {f"{n}.weight": getattr(head, n).weight for n in ("fc", "norm", "lm_head")}
    for name, parameter in layer.items():
        block = "self_attn." if name[0] in "qkvo" and "_proj" in name else ""
        block = "mlp." if name.split(".")[0] in {"gate_proj", "up_proj", "down_proj"} else block
        tensors[f"midlayer.{block}{name}"] = parameter
    save_file(
        {n: t.detach().to(torch.bfloat16).contiguous() for n, t in tensors.items()},
        tiny_head / "model.safetensors",
    )
    rotary = model.config.rope_parameters
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": rotary["rope_theta"],
        "max_position_embeddings": 4096,
        "vocab_size": VOCAB_SIZE,
        "draft_vocab_size": VOCAB_SIZE,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": list(AUX_LAYER_IDS),
            "use_aux_hidden_state": True,
        },
    }
    (tiny_head / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    print("held-out match by level:", " ".join(f"{m:.3f}" for m in matches))


def save_prompts(path: Path) -> None:
    """Questions the pair has not seen, two turns each."""
    rng = random.Random(SEED + 3)
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, 13):
            turns = [question for question, _ in conversation(rng)]
            line = {"question_id": number, "category": "facts", "turns": turns}
            file.write(json.dumps(line) + "\n")


def main() -> None:
    """Train both and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("eaglebench/data"))
    parser.add_argument("--target-seconds", type=float, default=300)
    parser.add_argument("--head-seconds", type=float, default=200)
    options = parser.parse_args()
    model = make_target()
    train_target(model, options.target_seconds)
    model.eval().requires_grad_(requires_grad=False)
    model.to(torch.bfloat16).to(torch.float32)  # the head learns on the weights that are kept
    head = TrainableHead(
        hidden=HIDDEN,
        mlp=MLP,
        heads=HEADS,
        kv_heads=KV_HEADS,
        num_aux=len(AUX_LAYER_IDS),
        vocab=VOCAB_SIZE,
    )
    matches = train_head(model, head, options.head_seconds)
    save_pair(model, head, options.out, matches)


if __name__ == "__main__":
    main()
