"""Whatever stands in a target's config.json: the logits of its own forward, or a refusal."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM

from eaglebench.errors import UsageError
from eaglebench.model.target import Target
from tests.families import CONTEXT, VOCAB, make_family
from tests.paged_logits import paged_logits

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers warns of odd values
KINDS = ("llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text", "granite", "cohere")
LENGTHS = (23, 29)
LAYER_TYPES = ("full_attention", "sliding_attention", "sliding_attention", "chunked_attention")
UNLISTED = (
    "rope_scaling",
    "rope_theta",
    "partial_rotary_factor",
    "sliding_window",
    "quantization_config",
    "torch_dtype",
    "is_decoder",
    "use_bidirectional_attention",
    "architectures",
    "model_type",
    "auto_map",
)
"""Fields that configs of these families may have and don't write themselves."""
SMALL_NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 4, 7, 8, 16, 48, 127, 128, 1000])
ROPES = st.fixed_dictionaries(
    {
        "rope_type": st.sampled_from(
            ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "spiral", None, 3]
        )
    },
    optional={
        "rope_theta": st.sampled_from([10000.0, 500, 1, 0, -5.0, None, "x"]),
        "factor": st.sampled_from([1.0, 2.0, 8, 0.5, 0, None, "x"]),
        "original_max_position_embeddings": st.sampled_from([16, 64, 128, 0, None]),
        "partial_rotary_factor": st.sampled_from([0.5, 1.0, 0.25, 0, 2]),
        "low_freq_factor": st.just(1.0),
        "high_freq_factor": st.sampled_from([4.0, 1.0]),
        "short_factor": st.just([1.0, 1.1, 1.2, 1.3]),
        "long_factor": st.sampled_from([[2.0, 3.0, 4.0, 5.0], [1.0], None]),
        "attention_factor": st.sampled_from([1.0, 0.5, None]),
        "beta_fast": st.sampled_from([32, 1]),
    },
)
ANYTHING = st.one_of(
    SMALL_NUMBERS,
    st.booleans(),
    st.none(),
    st.sampled_from([0.0, 0.5, 1e-6, 1.5, -2.0, 50.0, float("inf"), float("nan")]),
    st.sampled_from(["", "silu", "gelu", "relu", "nosuch", "llama", "full_attention", "bfloat16"]),
    st.lists(st.sampled_from(LAYER_TYPES), max_size=5),
    st.lists(SMALL_NUMBERS, max_size=3),
    ROPES,
    st.dictionaries(st.sampled_from(["a", "rope_type"]), SMALL_NUMBERS, max_size=1),
)


@cache
def published(kind: str) -> Path:
    """A folder with a model of that family; it lives as long as the process."""
    keeper = TemporaryDirectory(prefix="eaglebench-test-")
    KEPT.append(keeper)
    folder = Path(keeper.name)
    make_family(kind).save_pretrained(folder)
    return folder


KEPT: list[Any] = []


@st.composite
def edits(draw: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """A family, and one to three fields of its config with another value."""
    kind = draw(st.sampled_from(KINDS))
    written = json.loads((published(kind) / "config.json").read_text())
    names = [*sorted(written), *UNLISTED]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    fields: dict[str, Any] = {}
    for name in chosen:
        near = _like(name, written.get(name))
        fields[name] = draw(st.one_of(near, near, near, ANYTHING))
    return kind, fields


def _like(name: str, value: object) -> st.SearchStrategy[Any]:
    """Other values of the field's own type; `transformers` refuses most others by it."""
    if name.startswith("rope_"):
        return ROPES
    if name == "layer_types":
        return st.lists(st.sampled_from(LAYER_TYPES), min_size=4, max_size=4)
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, float):
        return st.sampled_from([0.0, 1e-6, 1e-3, 0.5, 1.0, 3.0, -1.0, 1e30])
    if isinstance(value, int):
        return SMALL_NUMBERS
    if isinstance(value, str):
        return st.sampled_from(["silu", "gelu", "relu2", "gelu_pytorch_tanh", "nosuch", "llama"])
    return ANYTHING


def own(folder: Path, prompts: list[Tensor]) -> list[Tensor] | None:
    """Logits by `transformers` alone; None where it can't load or run it."""
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        model.set_attn_implementation("eager")
        with torch.inference_mode():
            return [
                model(input_ids=ids[None], use_cache=False, return_dict=True).logits[0].clone()
                for ids in prompts
            ]
    except Exception:  # noqa: BLE001  # whatever it says of such a config
        return None


def hold(kind: str, fields: dict[str, Any]) -> bool:
    """Whether the target loads; asserts that it is the model's own forward if it does."""
    torch.set_num_threads(1)
    with TemporaryDirectory(prefix="eaglebench-test-") as name:
        folder = Path(name) / "target"
        shutil.copytree(published(kind), folder)
        config = json.loads((folder / "config.json").read_text()) | fields
        (folder / "config.json").write_text(json.dumps(config))
        try:
            target = Target.load(folder, dtype=torch.float32, device=torch.device("cpu"))
        except UsageError:
            return False
        generator = torch.Generator().manual_seed(3)
        lengths = [min(count, target.context_length) for count in LENGTHS]
        prompts = [
            torch.randint(3, min(VOCAB, target.vocab_size), (count,), generator=generator)
            for count in lengths
        ]
        expected = own(folder, prompts)
        assert expected is not None, "it loads here and not in transformers"
        for mine, theirs in zip(paged_logits(target, prompts, [9, 1, 19]), expected, strict=True):
            assert mine.shape == theirs.shape
            assert float((mine - theirs).abs().max()) <= 1e-3 * max(1.0, float(theirs.std()))
        assert target.context_length <= config.get("max_position_embeddings", CONTEXT)
        return True


def test_a_config_that_nobody_changed_loads() -> None:
    """So that the law below has something to compare."""
    assert all(hold(kind, {}) for kind in KINDS)
    assert hold("llama", {"rms_norm_eps": 1e-3, "hidden_act": "gelu"})
    assert not hold("llama", {"sliding_window": 8})


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(edit=edits())
def test_any_config_is_computed_or_refused(edit: tuple[str, dict[str, Any]]) -> None:
    """Never a load that differs, never a traceback."""
    hold(*edit)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(edit=edits())
def test_any_config_is_computed_or_refused_at_length(edit: tuple[str, dict[str, Any]]) -> None:
    """The same, more of them."""
    hold(*edit)
