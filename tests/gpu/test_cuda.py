"""The engine on a CUDA device: the same tokens as on the CPU, and no waiting inside attention.

Chains and trees, targets and heads with windows and without.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from eaglebench.engine.models import Models
from eaglebench.model.attention import BACKENDS, AttentionForm, make_attention
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.device import accelerator_facts
from eaglebench.model.layout_row import LayoutRow, Tree
from eaglebench.model.target import Target
from eaglebench.records.observation import RequestObservation
from tests.engines import (
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    run_all,
    tiny_models,
)
from tests.families import make_family
from tests.linear_runs import windowed_models
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import greedy_decode

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

CUDA = torch.device("cuda")
MIN_ACCEPTED_PER_STEP = 0.3


def cuda_models(dtype: torch.dtype, attention_backend: str) -> Models:
    """The tiny pair on the device."""
    return tiny_models(dtype, attention_backend, CUDA)


class Draft(NamedTuple):
    """Shape of a draft, and the windows of the head and of every odd layer of the target."""

    steps: int = 3
    topk: int = 1
    num_draft_tokens: int = 4
    head_window: int | None = None
    target_window: int | None = None

    def models(self, attention_backend: str, device: torch.device = CUDA) -> Models:
        """The pair in float64."""
        return windowed_models(self.head_window, self.target_window, attention_backend, device)


DRAFTS = (
    Draft(),
    Draft(topk=4, num_draft_tokens=12),
    Draft(steps=5, topk=8, num_draft_tokens=32),
    Draft(head_window=5, target_window=8),
    Draft(topk=4, num_draft_tokens=12, head_window=5, target_window=8),
)


def run_arm(
    arm: str, attention_backend: str, parallel: int, draft: Draft
) -> dict[str, RequestObservation]:
    """The shared-prefix prompts through one arm on the device, in float64."""
    knobs = make_knobs(
        arm,
        steps=draft.steps,
        eagle_topk=draft.topk,
        num_draft_tokens=draft.num_draft_tokens,
        page_size=4,
        chunked_prefill_size=16,
        parallel=parallel,
    )
    engine = make_engine(knobs, models=draft.models(attention_backend))
    requests = [make_request(f"r{i}", ids) for i, ids in enumerate(shared_prefix_prompts())]
    return run_all(engine, requests)


@pytest.mark.parametrize("draft", DRAFTS, ids=str)
@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("attention_backend", BACKENDS)
def test_the_device_is_lossless_and_cache_neutral(
    attention_backend: str, parallel: int, draft: Draft
) -> None:
    """In float64 every arm gives the CPU oracle's tokens, with the same accepted counts."""
    arms = {
        arm: run_arm(arm, attention_backend, parallel, draft)
        for arm in ("radix", "force-miss", "no-cache")
    }
    reference = draft.models("loop", torch.device("cpu"))
    expected = {}
    for index, ids in enumerate(shared_prefix_prompts()):
        request = make_request(f"r{index}", ids)
        expected[request.request_id] = tuple(greedy_decode(reference, ids, make_rule(request))[0])

    for observed in arms.values():
        assert {name: o.output_token_ids for name, o in observed.items()} == expected
    accepted = [{name: o.accepted_per_step for name, o in arm.items()} for arm in arms.values()]
    assert accepted[0] == accepted[1] == accepted[2]
    counts = [o.counters for o in arms["radix"].values()]
    assert sum(c.cached_tokens or 0 for c in counts) > 0
    assert sum(c.accepted or 0 for c in counts) > MIN_ACCEPTED_PER_STEP * sum(
        c.verify_steps or 0 for c in counts
    )


@pytest.mark.parametrize("window", [None, 6])
@pytest.mark.parametrize("is_tree", [False, True])
def test_padded_attention_never_waits_for_the_device(
    is_tree: bool,  # a parameter of the test
    window: int | None,
) -> None:
    """Nothing inside the padded attention asks the device for a value, grouped heads or a tree."""
    target = cuda_models(torch.bfloat16, "padded").target
    slots = np.arange(1, 33, dtype=np.int64)
    tree = Tree(np.tri(5, dtype=np.bool_), np.array([0, 1, 1, 2, 2])) if is_tree else None
    layout = make_layout(
        [LayoutRow(slots, 3), LayoutRow(slots[:20] + 40, 5, tree)], device=CUDA, backend="padded"
    )
    pool = target.make_pool(128)
    num_heads = target.config.num_attention_heads
    query = torch.randn(8, num_heads, target.head_dim, device=CUDA, dtype=target.dtype)
    key = torch.randn(8, target.num_kv_heads, target.head_dim, device=CUDA, dtype=target.dtype)
    attend = make_attention("padded")
    form = AttentionForm(scale=target.head_dim**-0.5, window=window)
    expected = attend(query, key, key, pool.of_layer(0), layout, form)  # first use may load kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        again = attend(query, key, key, pool.of_layer(0), layout, form)
    finally:
        torch.cuda.set_sync_debug_mode("default")

    assert torch.equal(expected, again)


def test_masked_grouped_attention_needs_no_slow_kernel() -> None:
    """With the plain kernel switched off, a step of chains and trees still finds one."""
    target = cuda_models(torch.bfloat16, "padded").target
    slots = np.arange(1, 65, dtype=np.int64)
    tree = Tree(np.tri(5, dtype=np.bool_), np.array([0, 1, 1, 2, 2]))
    layout = make_layout(
        [LayoutRow(slots, 9), LayoutRow(slots, 5, tree)], device=CUDA, backend="padded"
    )
    num_heads = target.config.num_attention_heads
    query = torch.randn(14, num_heads, target.head_dim, device=CUDA, dtype=target.dtype)
    key = torch.randn(14, target.num_kv_heads, target.head_dim, device=CUDA, dtype=target.dtype)
    form = AttentionForm(scale=target.head_dim**-0.5)
    pool = target.make_pool(128)

    assert num_heads > target.num_kv_heads
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        attended = make_attention("padded")(query, key, key, pool.of_layer(0), layout, form)

    assert torch.isfinite(attended).all()


def test_backends_agree_in_bfloat16() -> None:
    """The loop and the padded batch give the same logits but for rounding."""
    ids = torch.tensor(shared_prefix_prompts()[0], device=CUDA)
    slots = np.arange(1, 1 + len(ids), dtype=np.int64)
    logits = []
    for backend in BACKENDS:
        target = cuda_models(torch.bfloat16, backend).target
        layout = make_layout([LayoutRow(slots, len(ids))], device=CUDA, backend=backend)
        every = torch.arange(len(ids), device=CUDA)
        output = target.forward(ids, every, layout, target.make_pool(1 + len(ids)), every)
        logits.append(output.logits.float())

    spread = logits[0].std().item()
    assert (logits[0] - logits[1]).abs().max().item() < 0.1 * spread


def test_the_device_is_named() -> None:
    """By model, capability, CUDA and driver; a place like `cuda:0` is no machine."""
    facts = accelerator_facts(CUDA)

    assert facts is not None
    assert facts.name == torch.cuda.get_device_name()
    assert facts.compute_capability == ".".join(map(str, torch.cuda.get_device_capability()))
    assert facts.cuda == torch.version.cuda
    assert facts.driver
    assert facts.memory_bytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt_oss", "granite", "qwen3_moe"])
def test_families_are_proved_on_the_device(kind: str, dtype: torch.dtype) -> None:
    """At load, in the dtypes that are used there."""
    target = Target.proved(make_family(kind).to(CUDA, dtype))

    assert target.attention_backend == "padded"
