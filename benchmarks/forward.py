"""Time the target and the head against `transformers`: `python benchmarks/forward.py`.

One interleaved run: tokens of `generate`, then as many forwards of the engine in a row, round after
round, so that a noisy machine hits all alike and every call finds its weights as warm as another's.
Printed are medians and their ratio to one `generate` token. `verify` is what a step with two drafted
tokens computes: the target over 3 rows, the head over them, and one more level of the head with its
logits.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM

import eaglebench
from eaglebench.assets.cache import cache_root
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.heads.eagle import make_head
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.published import read_published
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target

HEAD = Path(eaglebench.__file__).parent / "data" / "smollm2-135m-eagle3"
CONTEXT, FIRST_SLOT = 128, 16
GENERATED = 8
CPU = torch.device("cpu")


def make_forward(target: Target, num_rows: int) -> Callable[[], None]:
    """A target forward over `num_rows` tokens behind a context."""
    pool = target.make_pool(FIRST_SLOT + CONTEXT)
    slots = np.arange(FIRST_SLOT, FIRST_SLOT + CONTEXT)
    rows = torch.arange(num_rows)

    def forward() -> None:
        layout = make_layout([LayoutRow(slots, num_rows)], device=CPU, backend="loop")
        target.forward(rows, rows + CONTEXT - num_rows, layout, pool, rows).logits.argmax(-1)

    return forward


def make_verify(target: Target, head: DraftHead) -> Callable[[], None]:
    """The models' part of a step with two drafted tokens."""
    pool, draft_pool = (each.make_pool(FIRST_SLOT + CONTEXT + 1) for each in (target, head))
    slots = np.arange(FIRST_SLOT, FIRST_SLOT + CONTEXT + 1)
    rows = torch.arange(3)

    def verify() -> None:
        layout = make_layout([LayoutRow(slots[:-1], 3)], device=CPU, backend="loop")
        positions = rows + CONTEXT - 3
        output = target.forward(rows, positions, layout, pool, rows, head.aux_layer_ids)
        assert output.aux is not None
        choices = output.logits.argmax(-1)
        hidden = head.forward(choices, head.fuse(output.aux), positions, layout, draft_pool)[-1:]
        token = head.target_ids(head.logits(hidden).argmax(-1))
        layout = make_layout([LayoutRow(slots, 1)], device=CPU, backend="loop")
        hidden = head.forward(token, hidden, positions[-1:] + 1, layout, draft_pool)
        head.logits(hidden).argmax(-1)

    return verify


def make_generate(model: Path, dtype: torch.dtype) -> Callable[[], None]:
    """`generate` of some tokens behind the same context."""
    reference = AutoModelForCausalLM.from_pretrained(model, dtype=dtype).eval()
    prompt = torch.arange(CONTEXT - GENERATED)[None]
    mask = torch.ones_like(prompt)

    def prefill_and(count: int) -> None:
        reference.generate(
            prompt,
            attention_mask=mask,
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )

    def generate() -> None:
        prefill_and(GENERATED + 1)

    generate.prefill = lambda: prefill_and(1)  # type: ignore[attr-defined]  # timed apart
    return generate


def seconds(call: Callable[[], None]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure(model: Path, dtype: torch.dtype, rounds: int) -> dict[str, float]:
    """Median milliseconds by what was timed."""
    generate = make_generate(model, dtype)
    target = Target.load(model, dtype=dtype, device=CPU)
    calls = {f"forward {n}": make_forward(target, n) for n in (1, 3, 4, 8)}
    calls["verify 3"] = make_verify(target, make_head(read_published(HEAD), target))
    times: dict[str, list[float]] = {name: [] for name in ("generate token", *calls)}
    for call in calls.values():
        call()
    for _ in range(rounds):
        prefill = seconds(generate.prefill)  # type: ignore[attr-defined]
        times["generate token"].append((seconds(generate) - prefill) / GENERATED)
        for name, call in calls.items():
            times[name].append(sum(seconds(call) for _ in range(GENERATED)) / GENERATED)
    return {name: 1e3 * statistics.median(each) for name, each in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=cache_root() / "smollm2-135m")
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for dtype in options.dtype:
        times = measure(options.model, getattr(torch, dtype), options.rounds)
        base = times["generate token"]
        for name, each in times.items():
            sys.stdout.write(f"{dtype:9} {name:15} {each:8.1f} ms  {each / base:5.2f}x\n")


if __name__ == "__main__":
    main()
