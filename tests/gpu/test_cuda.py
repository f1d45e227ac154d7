"""The engine on a CUDA device: the same tokens as on the CPU, and no waiting inside attention."""

from functools import cache

import numpy as np
import pytest
import torch

from eaglebench.contracts.observation import RequestObservation
from eaglebench.engine.models import Models
from eaglebench.engine.oracle import greedy_decode
from eaglebench.model.attention import BACKENDS, AttentionForm, make_attention
from eaglebench.model.attention_plan import make_plan
from eaglebench.model.device import accelerator_facts
from eaglebench.model.heads.loading import load_head
from eaglebench.model.plan_row import PlanRow
from eaglebench.model.target import Target
from tests.engines import (
    TINY,
    TINY_HEAD,
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    run_all,
    tiny_models,
)
from tests.families import make_family
from tests.prompts import shared_prefix_prompts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

CUDA = torch.device("cuda")
MIN_ACCEPTED_PER_STEP = 0.3


@cache
def cuda_models(dtype: torch.dtype, attention_backend: str) -> Models:
    """The tiny pair on the device."""
    target = Target.load(TINY, dtype=dtype, device=CUDA, attention_backend=attention_backend)
    return Models(target, load_head(TINY_HEAD, target))


def run_arm(arm: str, attention_backend: str, parallel: int) -> dict[str, RequestObservation]:
    """The shared-prefix prompts through one arm on the device, in float64."""
    knobs = make_knobs(arm, page_size=4, chunked_prefill_size=16, parallel=parallel)
    engine = make_engine(knobs, models=cuda_models(torch.float64, attention_backend))
    requests = [make_request(f"r{i}", ids) for i, ids in enumerate(shared_prefix_prompts())]
    return run_all(engine, requests)


@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("attention_backend", BACKENDS)
def test_the_device_is_lossless_and_cache_neutral(attention_backend: str, parallel: int) -> None:
    """In float64 every arm gives the CPU oracle's tokens, with the same accepted counts."""
    arms = {
        arm: run_arm(arm, attention_backend, parallel)
        for arm in ("radix", "force-miss", "no-cache")
    }
    expected = {}
    for index, ids in enumerate(shared_prefix_prompts()):
        request = make_request(f"r{index}", ids)
        expected[request.request_id] = tuple(
            greedy_decode(tiny_models(), ids, make_rule(request))[0]
        )

    for observed in arms.values():
        assert {name: o.output_token_ids for name, o in observed.items()} == expected
    accepted = [{name: o.accepted_per_step for name, o in arm.items()} for arm in arms.values()]
    assert accepted[0] == accepted[1] == accepted[2]
    counts = [o.counters for o in arms["radix"].values()]
    assert sum(c.cached_tokens for c in counts) > 0
    assert sum(c.accepted for c in counts) > MIN_ACCEPTED_PER_STEP * sum(
        c.verify_steps for c in counts
    )


def test_padded_attention_never_waits_for_the_device() -> None:
    """Nothing inside the padded attention asks the device for a value."""
    models = cuda_models(torch.bfloat16, "padded")
    target = models.target
    slots = np.arange(1, 33, dtype=np.int64)
    plan = make_plan(
        [PlanRow(slots, 3), PlanRow(slots[:20] + 40, 5)], device=CUDA, backend="padded"
    )
    pool = target.make_pool(128)
    query = torch.randn(8, 4, target.head_dim, device=CUDA, dtype=target.dtype)
    key = torch.randn(8, target.num_kv_heads, target.head_dim, device=CUDA, dtype=target.dtype)
    attend = make_attention("padded")
    form = AttentionForm(scale=target.head_dim**-0.5)
    expected = attend(query, key, key, pool, 0, plan, form)  # first use may load kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        again = attend(query, key, key, pool, 0, plan, form)
    finally:
        torch.cuda.set_sync_debug_mode("default")

    assert torch.equal(expected, again)


def test_backends_agree_in_bfloat16() -> None:
    """The loop and the padded batch give the same logits but for rounding."""
    ids = torch.tensor(shared_prefix_prompts()[0], device=CUDA)
    slots = np.arange(1, 1 + len(ids), dtype=np.int64)
    logits = []
    for backend in BACKENDS:
        target = cuda_models(torch.bfloat16, backend).target
        plan = make_plan([PlanRow(slots, len(ids))], device=CUDA, backend=backend)
        every = torch.arange(len(ids), device=CUDA)
        output = target.forward(ids, every, plan, target.make_pool(1 + len(ids)), every)
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
