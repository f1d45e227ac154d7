"""Convert a GGUF file to a `transformers` folder, once: float32 safetensors and the tokenizer.

    python -m eaglebench.model.gguf SOURCE.gguf FOLDER

Runs as a process of its own, so that fetching an asset loads no torch.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

NUM_ARGUMENTS = 3


def convert(source: Path, folder: Path) -> None:
    """Dequantise every tensor to float32, which is exact, and write config and tokenizer."""
    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(**where)
    folder.mkdir(parents=True, exist_ok=True)
    tied = "lm_head.weight" if model.config.tie_word_embeddings else None
    tensors = {n: t.contiguous() for n, t in model.state_dict().items() if n != tied}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config
    del config.quantization_config  # the saved weights are whole again
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != NUM_ARGUMENTS:
        sys.exit(__doc__)
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
