"""A step's waits for the device and its copies to it do not depend on batch and nodes.

There is no device here: what would travel is counted (`tests/device_traffic.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch

from eaglebench.records.generation import Sampling
from tests.device_traffic import DeviceTraffic
from tests.engines import make_engine, make_knobs, make_request
from tests.linear_runs import windowed_models
from tests.prompts import shared_prefix_prompts

STEPS = 4
WARM_UP = 2
"""Steps until all prompts are computed."""
OF_A_STEP = 3
"""Waits beside those for the drafts: chosen ids, their gaps, and which draft states are finite."""
MEASURED = 6
"""Enough that accepted nodes had to be moved to the front in one of them, which takes copies."""
LENIENT = Sampling(temperature=0.8, coin_key="", threshold_single=0.5, threshold_acc=0.5)
DRAWN_DRAFTS = Sampling(temperature=0.8, coin_key="", rule="draft-distribution")
OWN_COINS = Sampling(temperature=0.8, coin_key="", top_p=0.9)


class Traffic(NamedTuple):
    """Most of one verify step."""

    reads: int
    copies: int


def traffic_of(
    backend: str,
    batch: int,
    topk: int,
    num_draft_tokens: int,
    sampling: Sampling | None,
    windows: tuple[int | None, int | None] = (None, None),
) -> Traffic:
    """Most that travels in one verify step of so many requests."""
    knobs = make_knobs(
        "radix",
        steps=STEPS,
        eagle_topk=topk,
        num_draft_tokens=num_draft_tokens,
        parallel=batch,
        page_size=4,
        max_total_tokens=4096,
    )
    engine = make_engine(knobs, models=windowed_models(*windows, backend), audit=False)
    for number, prompt in enumerate(prompts(batch)):
        request = make_request(f"r{number}", prompt, max_new_tokens=60)
        if sampling is not None:
            request = replace(request, sampling=replace(sampling, coin_key=f"r{number}"))
        engine.add(request)
    for _ in range(WARM_UP):
        engine.step()
    reads, copies = [], []
    for _ in range(MEASURED):
        assert len(engine.scheduler.running) == batch
        with DeviceTraffic() as seen:
            engine.step()
        reads.append(seen.reads.total())
        copies.append(seen.copies.total())
    return Traffic(max(reads), max(copies))


def prompts(count: int) -> Sequence[tuple[int, ...]]:
    """Prompts of one beginning and other ends."""
    base = shared_prefix_prompts()[0]
    return [base[: len(base) - number] for number in range(count)]


@pytest.mark.parametrize("backend", ["loop", "padded"])
@pytest.mark.parametrize("windows", [(None, None), (5, 8)])
@pytest.mark.parametrize("sampling", [None, OWN_COINS, LENIENT], ids=["greedy", "coins", "lenient"])
def test_trees_of_any_batch_and_size(
    backend: str, windows: tuple[int | None, int | None], sampling: Sampling | None
) -> None:
    """Thresholds once read a number for every node of every request; copies grew with the batch."""
    one = traffic_of(backend, 1, 4, 8, sampling, windows)
    many = traffic_of(backend, 6, 6, 32, sampling, windows)

    assert many == one
    assert one.reads == STEPS + OF_A_STEP
    assert 0 < one.copies <= 3 * STEPS + 16


@pytest.mark.parametrize("backend", ["loop", "padded"])
@pytest.mark.parametrize("sampling", [None, OWN_COINS, LENIENT, DRAWN_DRAFTS])
def test_chains_of_any_batch(backend: str, sampling: Sampling | None) -> None:
    """Drawn drafts copied a coin for every request and level."""
    one = traffic_of(backend, 1, 1, STEPS + 1, sampling)
    many = traffic_of(backend, 6, 1, STEPS + 1, sampling)

    assert many == one
    assert one.reads == 1 + OF_A_STEP
    assert 0 < one.copies <= 4 * STEPS + 16


def test_what_travels_is_counted() -> None:
    """A count of nothing would be green whatever the engine does."""
    numbers = torch.arange(4)
    with DeviceTraffic() as seen:
        numbers.tolist()
        bool(numbers[0] > 1)
        numbers[numbers > 1]
        numbers.to(torch.device("cpu"))
        numbers.double()
        torch.tensor([1])
        numbers[[0, 1]]
        numbers[1:]

    assert (seen.reads.total(), seen.copies.total()) == (3, 3)
