"""What an engine can't be built from, in the words in which a run refuses it."""

import re
from collections.abc import Mapping

import pytest

from eaglebench.engine.config import EngineConfig
from eaglebench.engine.policy import EnginePolicy
from eaglebench.errors import UsageError
from eaglebench.plan.matrix import Limits, MatrixSpec, expand
from eaglebench.records.knobs import LEAST, EngineKnobs


def refusal(knobs: Mapping[str, object], arm: str = "radix", context_length: int = 512) -> str:
    """What the engine says of these knobs."""
    with pytest.raises(UsageError) as error:
        EngineConfig(
            knobs=EngineKnobs(**knobs),  # type: ignore[arg-type]  # wrong on purpose
            policy=EnginePolicy(arm),
            context_length=context_length,
        )
    return str(error.value)


@pytest.mark.parametrize("name", LEAST)
def test_a_number_too_small_is_named_by_its_flag(name: str) -> None:
    """With what it is and what it may be at least."""
    value = LEAST[name] - 1

    flag = f"--{name.replace('_', '-')}"
    assert refusal({name: value}) == f"{flag} {value}; expected at least {LEAST[name]}"


def test_shares_and_contexts_have_bounds_too() -> None:
    """A share of a pool is more than none of it and at most all; a context holds a token."""
    for ratio in (0.0, 1.5):
        said = refusal({"swa_full_tokens_ratio": ratio})
        assert re.search(r"--swa-full-tokens-ratio \S+; expected more than 0 and at most 1", said)
    assert refusal({}, context_length=0) == "--context-length 0; expected at least 1"


@pytest.mark.parametrize(
    ("arm", "axes"),
    [
        ("radix", {"page_size": 64}),
        ("radix", {"num_steps": 3, "num_draft_tokens": 3}),
        ("radix", {"num_steps": 2, "eagle_topk": 2, "num_draft_tokens": 99}),
        ("kv-reuse", {"eagle_topk": 2, "num_steps": 2, "num_draft_tokens": 4}),
    ],
)
def test_the_matrix_says_the_same(arm: str, axes: dict[str, int]) -> None:
    """What does not go together is refused with one sentence, wherever it is noticed first."""
    limits = Limits(max_total_tokens=32, context_length=None, is_speculative=True, arms=(arm,))
    with pytest.raises(UsageError) as error:
        expand(MatrixSpec(axes={name: (value,) for name, value in axes.items()}), limits)

    assert refusal({"max_total_tokens": 32, **axes}, arm) == str(error.value)
