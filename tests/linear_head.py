"""An EAGLE-1 head for the tiny target that foretells well, made in a second without training.

fc is the least-squares fit of the target's next state from the next token's embedding and this
state, over answers of the target itself. Attention and MLP are random and small, so that draft KV
matters for every choice without spoiling it.
"""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from tests.engines import make_request, make_rule, tiny_models
from tests.loaded_heads import load_head
from tests.prompts import question_prompts
from tests.slow_oracle import greedy_decode

HIDDEN, INNER, HEADS, KV_HEADS, WIDTH = 96, 48, 4, 2, 24
ANSWER, RIDGE = 24, 1e-2
CONFIG = {
    "architectures": ["LlamaForCausalLMEagle"],
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": WIDTH,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
    "vocab_size": 260,
    "bias": True,
}


def fit_fc(target: Target) -> dict[str, Tensor]:
    """`fc` and its bias in closed form."""
    inputs, outputs = [], []
    for prompt in question_prompts():
        request = make_request("answer", prompt, max_new_tokens=ANSWER)
        answer, _ = greedy_decode(Models(target, None), prompt, make_rule(request))
        ids = torch.tensor([*prompt, *answer])
        layout = make_layout(
            [LayoutRow(np.arange(len(ids)), len(ids))], device=target.device, backend="loop"
        )
        output = target.forward(
            ids,
            torch.arange(len(ids)),
            layout,
            target.make_pool(len(ids)),
            torch.tensor([0]),
            (target.normed_state_id,),
        )
        assert output.aux is not None
        embedded = target.embedding.weight[ids[1:]]
        ones = torch.ones(len(embedded), 1, dtype=embedded.dtype)
        inputs.append(torch.cat([embedded, output.aux[:-1], ones], dim=-1))
        outputs.append(output.aux[1:])
    rows, wanted = torch.cat(inputs), torch.cat(outputs)
    ridge = RIDGE * torch.eye(rows.shape[1], dtype=rows.dtype)
    fitted = torch.linalg.solve(rows.T @ rows + ridge, rows.T @ wanted)
    return {"fc.weight": fitted[:-1].T.contiguous(), "fc.bias": fitted[-1].contiguous()}


def write_linear_head(folder: Path, target: Target) -> Path:
    """The head as a folder in SGLang's format."""
    generator = torch.Generator().manual_seed(5)
    shapes = {
        "self_attn.q_proj": (HEADS * WIDTH, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * WIDTH),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
    }
    tensors = fit_fc(target)
    for name, shape in shapes.items():
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64) * 0.02
        tensors[f"layers.0.{name}.weight"] = drawn
    tensors["layers.0.post_attention_layernorm.weight"] = torch.ones(HIDDEN, dtype=torch.float64)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


@cache
def linear_models() -> Models:
    """The tiny target in float64 with this head."""
    target = tiny_models().target
    with TemporaryDirectory() as folder:
        head = load_head(write_linear_head(Path(folder) / "head", target), target)
    return Models(target, head)
