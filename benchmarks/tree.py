"""Time a step of a draft tree against a step of a chain: `python benchmarks/tree.py`.

One interleaved run on the real model: the same prompts and numbers of new tokens through a chain
(3 steps, 4 draft tokens) and a tree (top-k 4, 3 steps, 8 draft tokens), one request at a time, round
after round. Only steps that verify are timed: verify, draft extend and propose. Printed are medians
over rounds in milliseconds a step, and the tree's ratio to the chain. `--cpu-time` counts the CPU
time of the process instead of the time on the wall, for a machine that others load; with one thread
the two are the same on an idle one.
"""

import argparse
import statistics
import sys
import time

from eaglebench.assets.catalog import asset
from eaglebench.backends.embedded import EmbeddedBackend, EmbeddedRuntime
from eaglebench.backends.loading import load_embedded
from eaglebench.plan.questions import read_question_file
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import ModelChoice

STEPS = 3
SHAPES = {"chain": (1, 4), "tree": (4, 8)}
"""Top-k and draft tokens."""


class CpuClock:
    """CPU time of this process."""

    def now_s(self) -> float:
        """Seconds."""
        return time.process_time()


def make_backend(runtime: EmbeddedRuntime, shape: str) -> EmbeddedBackend:
    """An engine without a cache that drafts in this shape."""
    topk, num_draft_tokens = SHAPES[shape]
    return runtime.backend(
        EngineKnobs(
            arm="no-cache",
            num_steps=STEPS,
            eagle_topk=topk,
            num_draft_tokens=num_draft_tokens,
            max_total_tokens=1024,
        )
    )


def step_ms(backend: EmbeddedBackend, request: GenerationRequest) -> float:
    """Milliseconds of a step that verifies, over one answer."""
    backend.take_step_times()
    for _ in backend.generate([request]):
        pass
    times = backend.take_step_times()
    return 1e3 * times.decode_s / times.decode_steps


def measure(runtime: EmbeddedRuntime, options: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds a step of each shape, a value a round and question."""
    backends = {shape: make_backend(runtime, shape) for shape in SHAPES}
    asked = read_question_file(asset("mtbench-questions").path).questions
    times: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for question in asked[: options.questions]:
        prompt = runtime.tokenizer.render_chat([{"role": "user", "content": question.turns[0]}])
        request = GenerationRequest(
            request_id=question.question_id,
            prompt_token_ids=tuple(prompt),
            max_new_tokens=options.tokens,
        )
        for number in range(options.rounds):
            order = list(SHAPES)[:: -1 if number % 2 else 1]
            for shape in order:
                times[shape].append(step_ms(backends[shape], request))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    model, head = (asset(name).path for name in ("smollm2-135m", "smollm2-135m-eagle3"))
    for dtype in options.dtypes:
        runtime = load_embedded(
            ModelChoice(
                target=str(model), draft=str(head), dtype=dtype, num_threads=options.threads
            )
        )
        if options.cpu_time:
            runtime.clock = CpuClock()
        started = time.perf_counter()
        times = measure(runtime, options)
        chain, tree = (statistics.median(each) for each in times.values())
        pairs = zip(times["tree"], times["chain"], strict=True)
        ratio = statistics.median(mine / other for mine, other in pairs)
        sys.stdout.write(
            f"{dtype:8}  chain {chain:6.1f} ms  tree {tree:6.1f} ms a step  {ratio:.2f}x  "
            f"({time.perf_counter() - started:.0f} s)\n"
        )


if __name__ == "__main__":
    main()
