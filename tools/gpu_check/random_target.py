"""Write a target with random weights in the shape of SmolLM2-135M, with the tiny tokenizer.

python -m tools.gpu_check.random_target FOLDER
"""

import argparse
import shutil
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import eaglebench

TINY = Path(eaglebench.__file__).parent / "data" / "tiny"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SEED = 0


def smollm2_config() -> LlamaConfig:
    """The shape of SmolLM2-135M."""
    return LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        head_dim=64,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        tie_word_embeddings=True,
    )


def write_random_target(folder: Path) -> None:
    """Write weights, config and tokenizer; bytes are the first 256 of 49152 token ids."""
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(smollm2_config()).to(torch.bfloat16)
    model.save_pretrained(folder)
    for name in TOKENIZER_FILES:
        shutil.copy(TINY / name, folder / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_random_target(parser.parse_args().folder)
