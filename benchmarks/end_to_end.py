"""Time whole answers against `transformers` `generate`: `python benchmarks/end_to_end.py`.

One interleaved run: the same prompt and number of new tokens through `generate` and through the
engine without a cache, round after round, same dtype and threads. Printed are the acceptance length,
medians of tokens a second, and their ratio.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from eaglebench.assets.catalog import asset
from eaglebench.backends.loading import load_embedded
from eaglebench.plan.questions import read_question_file
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import ModelChoice


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", nargs="+", default=["85", "83", "81"])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    model, head = (asset(name).path for name in ("smollm2-135m", "smollm2-135m-eagle3"))
    runtime = load_embedded(
        ModelChoice(target=str(model), draft=str(head), num_threads=options.threads)
    )
    reference = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    knobs = EngineKnobs(
        arm="no-cache",
        num_steps=options.steps,
        num_draft_tokens=options.steps + 1,
        max_total_tokens=1024,
    )
    backend = runtime.backend(knobs)
    asked = {q.question_id: q for q in read_question_file(_questions()).questions}
    for name in options.questions:
        prompt = runtime.tokenizer.render_chat([{"role": "user", "content": asked[name].turns[0]}])
        ids = torch.tensor(prompt)[None]
        rates: dict[str, list[float]] = {"generate": [], "engine": []}
        for number in range(options.rounds):
            started = time.perf_counter()
            reference.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=options.tokens,
                min_new_tokens=options.tokens,
                do_sample=False,
                pad_token_id=0,
            )
            rates["generate"].append(options.tokens / (time.perf_counter() - started))
            request = GenerationRequest(
                request_id=f"{name}/{number}",
                prompt_token_ids=tuple(prompt),
                max_new_tokens=options.tokens,
            )
            started = time.perf_counter()
            (observation,) = backend.generate([request])
            rates["engine"].append(options.tokens / (time.perf_counter() - started))
        counters = observation.counters
        base, mine = (statistics.median(each) for each in rates.values())
        sys.stdout.write(
            f"question {name}: acceptance length {(counters.emitted or 0) / (counters.verify_steps or 0):.2f}, "
            f"generate {base:.1f}, engine {mine:.1f} token/s, {mine / base:.2f}x\n"
        )


def _questions() -> Path:
    return asset("mtbench-questions").path


if __name__ == "__main__":
    main()
