"""Train the tiny pair: a byte-level target and its EAGLE-3 head, in minutes on two cores.

    python -m tools.train_tiny.train --out eaglebench/data

Writes `tiny/` (target, tokenizer, questions) and `tiny-eagle3/` (head in the published format).
"""

import argparse
from pathlib import Path

import torch

from tools.train_tiny.export import save_head, save_target
from tools.train_tiny.head_training import make_head, train_head
from tools.train_tiny.prompts import save_prompts
from tools.train_tiny.target import make_target, train_target

SEED = 20260101


def main() -> None:
    """Train both and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("eaglebench/data"))
    parser.add_argument("--target-steps", type=int, default=600)
    parser.add_argument("--head-steps", type=int, default=220)
    options = parser.parse_args()
    model = make_target(SEED)
    right = train_target(model, options.target_steps, SEED)
    model.eval().requires_grad_(requires_grad=False)
    model.to(torch.bfloat16).to(torch.float32)  # the head learns on the weights that are kept
    save_target(model, options.out / "tiny", right)
    save_prompts(options.out / "tiny" / "prompts.jsonl", SEED)
    model.to(torch.float32)
    head = make_head(SEED)
    matches = train_head(model, head, options.head_steps, SEED + 2)
    save_head(head, options.out / "tiny-eagle3", model, matches)
    print("match by level on new text:", " ".join(f"{match:.3f}" for match in matches))


if __name__ == "__main__":
    main()
