"""Dense replay: a draft at every position of a stored run, so that shapes meet the same roots.

Two runs of different shapes verify at different positions, so their accepted counts can't be
compared one by one. Here every position of a stored answer is made the root of a verify step: its
prefix is the prompt, and what follows is replayed as the target's choices. float64, tiny pair.

What is held here is that one shape lies within another, which a drafter that looks at the wrong
places keeps as well. That every node is drafted from the right places is held in `test_tree_nodes.py`.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest

from tests.engines import make_engine, make_knobs, make_request, make_rule, run_all, tiny_models
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import greedy_decode

NUM_STORED = 28
PREFILL_SAMPLED = 1
BONUS = 1


@cache
def stored_runs() -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Prompts and their greedy answers."""
    runs = []
    for prompt in (shared_prefix_prompts()[0], shared_prefix_prompts()[3]):
        request = make_request("stored", prompt, max_new_tokens=NUM_STORED)
        answer, _ = greedy_decode(tiny_models(), prompt, make_rule(request))
        runs.append((tuple(prompt), tuple(answer)))
    return tuple(runs)


def accepted_everywhere(steps: int, topk: int, draft_tokens: int) -> tuple[int, ...]:
    """Drafts accepted in the first verify step from each position of the stored runs."""
    knobs = make_knobs(
        "radix", steps=steps, eagle_topk=topk, num_draft_tokens=draft_tokens, page_size=4
    )
    length = PREFILL_SAMPLED + steps + BONUS  # the longest that one verify step can deliver
    requests, replay = [], {}
    for number, (prompt, answer) in enumerate(stored_runs()):
        for start in range(len(answer) - length + 1):
            name = f"{number}/{start}"
            known = (*prompt, *answer[:start])
            requests.append(make_request(name, known, max_new_tokens=length))
            replay[name] = answer[start : start + length]
    observed = run_all(make_engine(knobs, audit=False), requests, replay)
    for name, tokens in replay.items():
        assert observed[name].output_token_ids == tokens
    return tuple(observed[request.request_id].steps[0].accepted for request in requests)


@pytest.mark.parametrize(
    ("steps", "topk", "draft_tokens"),
    [(2, 4, (2, 3, 5, 9, 21)), (3, 4, (2, 4, 8, 16, 37)), (5, 8, (6, 16, 41, 64))],
)
def test_more_draft_tokens_never_accept_less(
    steps: int, topk: int, draft_tokens: Sequence[int]
) -> None:
    """At fixed steps and top-k the smaller tree lies inside the larger one, at every position."""
    sweep = [accepted_everywhere(steps, topk, number) for number in draft_tokens]

    assert len(sweep[0]) >= 2 * (NUM_STORED // 2)
    for smaller, larger in pairwise(sweep):
        assert all(few <= many for few, many in zip(smaller, larger, strict=True))
    assert sum(sweep[0]) < sum(sweep[-1])
    assert max(sweep[-1]) == steps


def test_longer_chains_never_accept_less() -> None:
    """A chain of K begins with the chain of K - 1."""
    sweep = [accepted_everywhere(steps, 1, steps + 1) for steps in (1, 2, 3)]
    shared = len(stored_runs()) * (NUM_STORED - (PREFILL_SAMPLED + 3 + BONUS) + 1)

    assert sum(len(found) for found in sweep) > 3 * shared
    by_start = [_by_start(found) for found in sweep]
    for shorter, longer in pairwise(by_start):
        common = shorter.keys() & longer.keys()
        assert len(common) >= shared
        assert all(shorter[start] <= longer[start] for start in common)


def _by_start(accepted: Sequence[int]) -> dict[tuple[int, int], int]:
    """Accepted counts by run and position in its answer."""
    size = len(accepted) // len(stored_runs())
    return {divmod(index, size): count for index, count in enumerate(accepted)}


def test_what_more_branches_bring_is_printed() -> None:
    """Over top-k there is no law (a wider level can crowd a path out): `pytest -rP` shows the sums."""
    for topk, draft_tokens in ((1, 4), (2, 7), (4, 13), (8, 25)):
        accepted = accepted_everywhere(3, topk, draft_tokens)
        print(f"steps 3, top-k {topk}: {sum(accepted)} accepted at {len(accepted)} positions")  # noqa: T201

        assert max(accepted) == 3
