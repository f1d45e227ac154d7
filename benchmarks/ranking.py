"""Time the ranking of a tree's candidates on ties: `python benchmarks/ranking.py`.

One interleaved run over log-probabilities of a vocabulary: rounded to bfloat16, where most rows tie
at the cut, and not rounded. `rank_best` is held against sorting whole rows whenever one ties, which
is how ties were broken before, and against `topk`, which breaks none. Printed are medians of CPU time
in milliseconds a call, and how often `rank_best` goes into the others.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from eaglebench.spec.likeliest import rank_best

Ranking = Callable[[Tensor, int], object]


def sort_on_ties(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`, or whole rows sorted where any row ties at the cut."""
    best, columns = torch.topk(scores, count + 1, dim=-1)
    if bool((best[:, count - 1] == best[:, count]).any()):
        best, columns = torch.sort(scores, dim=-1, descending=True, stable=True)
    return best[:, : count + 1], columns[:, :count]


def topk_alone(scores: Tensor, count: int) -> object:
    """The least that has to be done."""
    return torch.topk(scores, count + 1, dim=-1)


RANKINGS: dict[str, Ranking] = {
    "rank_best": rank_best,
    "sort on ties": sort_on_ties,
    "topk alone": topk_alone,
}


def time_ms(ranking: Ranking, scores: Tensor, count: int) -> float:
    """CPU milliseconds of one call."""
    started = time.process_time()
    ranking(scores, count)
    return 1e3 * (time.process_time() - started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--topk", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    exact = 4 * torch.randn((options.rows, options.vocab), generator=generator)
    for kind, logits in (("tied", exact.bfloat16().float()), ("untied", exact)):
        scores = torch.log_softmax(logits, dim=-1)
        times: dict[str, list[float]] = {name: [] for name in RANKINGS}
        for _ in range(options.rounds):
            for name, ranking in RANKINGS.items():
                times[name].append(time_ms(ranking, scores, options.topk))
        mine = statistics.median(times["rank_best"])
        for name, each in times.items():
            median = statistics.median(each)
            sys.stdout.write(f"{kind:7} {name:13} {median:8.3f} ms  {median / mine:6.2f}x\n")


if __name__ == "__main__":
    main()
