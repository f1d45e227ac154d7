"""Both folders in the published formats, with a model card each."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from eaglebench.model.target import Target
from eaglebench.training.blueprint import new_blueprint, published_tensors
from eaglebench.training.recipe import TrainingRecipe
from eaglebench.training.training_time_test import TrainableHead
from tools.train_tiny.head_training import AUX_LAYER_IDS
from tools.train_tiny.target import HIDDEN
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


def save_head(
    head: TrainableHead, folder: Path, model: LlamaForCausalLM, matches: list[float]
) -> None:
    """Weights, config and card of the head of `model`, which computes through pools afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    target_ids = torch.tensor(DRAFT_TOKEN_IDS)
    tensors = published_tensors(head, target_ids, VOCAB_SIZE)
    recipe = TrainingRecipe(aux_layer_ids=AUX_LAYER_IDS)
    fields = new_blueprint(Target(model), recipe, target_ids).fields
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(fields, indent=1) + "\n")
    shown = ", ".join(f"{match:.3f}" for match in matches)
    card = HEAD_CARD.format(
        levels=len(matches), vocab=len(DRAFT_TOKEN_IDS), all_vocab=VOCAB_SIZE, matches=shown
    )
    (folder / "README.md").write_text(card)
