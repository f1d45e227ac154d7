"""How many window pages one request holds, all along a context of 4,096 tokens.

Look-ahead is what the scheduler reserves past a step's own tokens for the proposal after it: a slot
for every node of a chain, the scratch slots of all levels but the last for a tree.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.kv.window import PagePairAllocator, slots_in_front
from eaglebench.model.target import Target, TargetOutput
from eaglebench.records.knobs import EngineKnobs
from tests.checkpoints import publish_eagle1
from tests.engines import make_engine, make_knobs, make_request
from tests.hybrids import make_hybrid
from tests.loaded_heads import load_head

CONTEXT, NUM_NEW, CHUNK, VOCAB = 4096, 100, 256, 12
SHAPES = {"chain": (3, 1, 4), "tree": (3, 3, 10)}
"""Steps, top-k and draft tokens."""


class WatchedTarget(Target):
    """A target that calls `watch` in every forward, when the step's pages have all been taken."""

    watch: Callable[[], None]

    def forward(self, *args: Any, **options: Any) -> TargetOutput:
        """See `Target`."""
        self.watch()
        return super().forward(*args, **options)


def make_long_engine(folder: Path, knobs: EngineKnobs, window: int) -> Engine:
    """A window layer and a full one, random, with a random head."""
    model = make_hybrid(
        "qwen3",
        vocab_size=VOCAB,
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=window,
        max_position_embeddings=2 * CONTEXT,
    )
    target = WatchedTarget(model)
    head = publish_eagle1(
        folder / "head", "sglang", vocab_size=VOCAB, max_position_embeddings=2 * CONTEXT
    )
    models = Models(target, load_head(head, target))
    return make_engine(knobs, models=models, context_length=2 * CONTEXT, audit=False)


def windows_in_use(engine: Engine) -> int:
    """Window pages that are neither free nor the tree's to give away."""
    storage = engine.storage
    assert isinstance(storage.pages, PagePairAllocator)
    pages = storage.pages.window_pages
    return pages.num_pages - pages.num_free - storage.cache.num_evictable_windows


@pytest.mark.parametrize(
    ("arm", "page_size", "window", "shape"),
    list(product(("no-cache", "radix"), (1, 16, 64), (8, 128), SHAPES)),
)
def test_a_request_holds_one_window_and_no_more(
    arm: str, page_size: int, window: int, shape: str, tmp_path: Path
) -> None:
    """At every forward and after every step; prefilling, the chunk may come on top.

    ceil((window - 1 + draft tokens + look-ahead) / page) + 1. Where pages are wider than the window
    and a tree will keep the answer, one more: the page in front of the last whole one, which the
    request does not look at any longer, but whoever hits the answer's end will.
    """
    torch.set_num_threads(1)
    steps, topk, draft_tokens = SHAPES[shape]
    knobs = make_knobs(
        arm,
        steps=steps,
        eagle_topk=topk,
        num_draft_tokens=draft_tokens,
        page_size=page_size,
        chunked_prefill_size=CHUNK,
        max_total_tokens=2 * CONTEXT,
    )
    engine = make_long_engine(tmp_path, knobs, window)
    look_ahead = steps if topk == 1 else topk * (steps - 1)
    bound = -(-(slots_in_front(window) + draft_tokens + look_ahead) // page_size) + 1
    if arm == "radix" and page_size > window:
        bound += 1
    prefilling: list[int] = []
    decoding: list[int] = []

    def watch() -> None:
        for request in engine.scheduler.running:  # one, until it has ended
            (prefilling if request.is_prefilling else decoding).append(windows_in_use(engine))

    engine.models.target.watch = watch  # type: ignore[attr-defined]  # it is a WatchedTarget
    generator = torch.Generator().manual_seed(3)
    prompt = torch.randint(1, VOCAB, (CONTEXT - NUM_NEW // 2,), generator=generator).tolist()
    engine.add(make_request("long", prompt, max_new_tokens=NUM_NEW))
    while engine.has_work:
        engine.step()
        watch()

    assert len(prefilling) > CONTEXT // CHUNK
    assert len(decoding) > NUM_NEW // 4
    assert max(decoding) <= bound
    assert max(prefilling) <= bound + -(-CHUNK // page_size)
