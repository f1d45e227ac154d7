"""Builders for engine tests: the tiny trained pair, engines over it, and the oracles' views."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

import eaglebench
from eaglebench.backends.embedded import EmbeddedBackend, make_policy
from eaglebench.engine.config import EngineConfig
from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.engine.stopping import StopRule
from eaglebench.model.target import Target
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.observation import RequestObservation
from tests.fake_clock import FakeClock
from tests.loaded_heads import load_head

TINY = Path(eaglebench.__file__).parent / "data" / "tiny"
TINY_HEAD = Path(eaglebench.__file__).parent / "data" / "tiny-eagle3"
CONTEXT = 512


CPU = torch.device("cpu")


@cache
def tiny_models(
    dtype: torch.dtype = torch.float64,
    attention_backend: str = "auto",
    device: torch.device = CPU,
) -> Models:
    """The trained byte-level pair that ships with the package."""
    torch.set_num_threads(1)
    target = Target.load(TINY, dtype=dtype, device=device, attention_backend=attention_backend)
    head = load_head(TINY_HEAD, target)
    return Models(target, head)


def byte_text(ids: Sequence[int]) -> str:
    """Text of byte tokens; special tokens have none."""
    return bytes(token_id for token_id in ids if token_id < 256).decode("utf-8", "replace")


def byte_ids(text: str) -> tuple[int, ...]:
    """Byte tokens of a text."""
    return tuple(text.encode())


def make_knobs(arm: str = "radix", *, steps: int = 3, **changes: object) -> EngineKnobs:
    """Knobs with a chain of `steps` proposed tokens."""
    values: dict[str, object] = {
        "arm": arm,
        "num_steps": steps,
        "num_draft_tokens": steps + 1,
        "max_total_tokens": 2048,
        **changes,
    }
    return EngineKnobs(**values)  # type: ignore[arg-type]  # values are checked by the dataclass


def make_engine(
    knobs: EngineKnobs | None = None,
    *,
    models: Models | None = None,
    audit: bool = True,
    context_length: int = CONTEXT,
    two_pools: bool = True,
) -> Engine:
    """An engine over the tiny pair whose pools start as NaN and whose books are audited.

    `two_pools` gives window layers, where there are any, a pool of their own.
    """
    knobs = knobs or make_knobs()
    models = models or tiny_models()
    config = EngineConfig(
        knobs=knobs,
        policy=make_policy(knobs.arm),
        context_length=context_length,
        window=models.target.window if two_pools else None,
        audit=audit,
        pool_fill=float("nan"),
    )
    return Engine(models, config, clock=FakeClock(), decode=byte_text)


def make_request(
    name: str,
    prompt: str | Sequence[int],
    *,
    max_new_tokens: int = 24,
    stop_token_ids: tuple[int, ...] = (),
    stop_strings: tuple[str, ...] = (),
) -> GenerationRequest:
    """A request for a text or token prompt."""
    ids = byte_ids(prompt) if isinstance(prompt, str) else tuple(prompt)
    return GenerationRequest(
        request_id=name,
        prompt_token_ids=ids,
        max_new_tokens=max_new_tokens,
        stop_token_ids=stop_token_ids,
        stop_strings=stop_strings,
    )


def make_rule(request: GenerationRequest, context_length: int = CONTEXT) -> StopRule:
    """The rule under which the oracle decodes a request."""
    return StopRule(
        stop_token_ids=frozenset(request.stop_token_ids),
        stop_strings=request.stop_strings,
        max_output_tokens=request.max_new_tokens,
        max_known_tokens=context_length,
        decode=byte_text,
    )


def run_all(
    engine: Engine,
    requests: Iterable[GenerationRequest],
    replay: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, RequestObservation]:
    """Run requests through the backend and return observations by request id."""
    observations = EmbeddedBackend(engine).generate(requests, replay)
    return {observation.request_id: observation for observation in observations}


@cache
def hybrid_models(
    window: int, attention_backend: str = "auto", device: torch.device = CPU
) -> Models:
    """The tiny pair in float64, every odd layer of its target with a window and a sink a head."""
    torch.set_num_threads(1)
    config = AutoConfig.from_pretrained(TINY)
    count = config.num_hidden_layers
    config.layer_types = ["sliding_attention" if n % 2 else "full_attention" for n in range(count)]
    config.sliding_window = window
    model = AutoModelForCausalLM.from_pretrained(TINY, config=config, dtype=torch.float64)
    generator = torch.Generator().manual_seed(window)
    shape = (count // 2, config.num_attention_heads)
    sinks = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = Target(model.to(device), attention_backend=attention_backend, sinks=sinks.to(device))
    return Models(target, load_head(TINY_HEAD, target))
