"""Both folders in the published formats, with a model card each."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from eaglebench.training.blueprint import published_tensors
from eaglebench.training.trainable import TrainableHead
from tools.train_tiny.head_training import AUX_LAYER_IDS
from tools.train_tiny.target import HEADS, HIDDEN, KV_HEADS, MLP
from tools.train_tiny.tokens import DRAFT_TOKEN_IDS, VOCAB_SIZE, save_tokenizer

TARGET_CARD = """# tiny

A byte-level Llama of {layers} layers, hidden size {hidden}, trained by `tools/train_tiny` on
synthetic conversations: made-up words to say again, and facts with code words to recall. It knows
nothing else. It exists for tests and for `eaglebench run tiny`.

It guesses {right:.1%} of the answer bytes of new conversations right. Weights are bfloat16.
"""
HEAD_CARD = """# tiny-eagle3

The EAGLE-3 head of `tiny`, trained by `tools/train_tiny` with training-time test over {levels}
levels. It proposes from {vocab} of the {all_vocab} tokens (`d2t`, `t2d`).

Match with the target's argmax in answers of new conversations, by level, when all levels before
it were right: {matches}. Weights are bfloat16.
"""


def save_target(model: LlamaForCausalLM, folder: Path, right: float) -> None:
    """Weights, config, tokenizer and card of the target."""
    folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    save_tokenizer(folder)
    card = TARGET_CARD.format(layers=model.config.num_hidden_layers, hidden=HIDDEN, right=right)
    (folder / "README.md").write_text(card)


def save_head(head: TrainableHead, folder: Path, rope_theta: float, matches: list[float]) -> None:
    """Weights, config and card of the head."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = published_tensors(head, torch.tensor(DRAFT_TOKEN_IDS), VOCAB_SIZE)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(_config(rope_theta), indent=1) + "\n")
    shown = ", ".join(f"{match:.3f}" for match in matches)
    card = HEAD_CARD.format(
        levels=len(matches), vocab=len(DRAFT_TOKEN_IDS), all_vocab=VOCAB_SIZE, matches=shown
    )
    (folder / "README.md").write_text(card)


def _config(rope_theta: float) -> dict[str, object]:
    return {
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
        "rope_theta": rope_theta,
        "max_position_embeddings": 4096,
        "vocab_size": VOCAB_SIZE,
        "draft_vocab_size": len(DRAFT_TOKEN_IDS),
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eagle_aux_hidden_state_layer_ids": list(AUX_LAYER_IDS),
        "eagle_config": {  # SGLang counts outputs of layers
            "eagle_aux_hidden_state_layer_ids": [index - 1 for index in AUX_LAYER_IDS],
            "use_aux_hidden_state": True,
        },
    }
