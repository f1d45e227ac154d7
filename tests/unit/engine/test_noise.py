"""What other matrix shapes do to logits and leads, as a run measures it."""

from dataclasses import replace

import pytest
import torch

from eaglebench.engine.models import Models
from eaglebench.engine.noise import NoiseOfSide, measure_noise
from tests.engines import tiny_models
from tests.prompts import question_prompts

PROMPTS = [ids[:60] for ids in question_prompts()[:2]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_move_logits_and_leads_a_little(dtype: torch.dtype) -> None:
    """More than nothing, less than a thousand roundings of a logit of ten.

    The quantile of a lead stays below five times the largest change of a logit, so that four of it
    in two arms allow no smaller gap than ten logits did.
    """
    noise = measure_noise(tiny_models(dtype), PROMPTS)

    for logit, lead in ((noise.target, noise.target_lead), (noise.draft, noise.draft_lead)):
        assert lead is not None
        assert 0 < logit < 1e4 * torch.finfo(dtype).eps
        assert 0 < lead < 5 * logit


def test_noise_grows_with_the_rounding() -> None:
    """Float32 has 29 bits of the fraction less than float64, 5e8 times the rounding."""
    single, double = (
        measure_noise(tiny_models(t), PROMPTS) for t in (torch.float32, torch.float64)
    )

    assert single.draft_lead is not None
    assert double.draft_lead is not None
    assert 1e7 < single.draft / double.draft < 1e10
    assert 1e7 < single.draft_lead / double.draft_lead < 1e10


def test_without_a_head_or_a_prompt_there_is_no_lead() -> None:
    """None, not zero."""
    plain: Models = replace(tiny_models(), head=None)

    headless, silent = measure_noise(plain, PROMPTS[:1]), measure_noise(tiny_models(), [])

    assert headless.target_lead is not None
    assert headless.draft_lead is None
    assert (silent.target, silent.target_lead, silent.draft_lead) == (0.0, None, None)


def test_one_outlier_in_a_hundred_places_moves_no_lead() -> None:
    """Two hundred places whose leads change by a quarter, one of them by five; one is no number."""
    one = torch.tensor([[3.0, 1.0, 0.0]]).repeat(201, 1)
    other = one + torch.tensor([0.0, 0.25, 0.0])
    other[200, 1] += 4.75
    other[190, 0] = float("nan")
    side = NoiseOfSide()

    side.add(one, other)

    assert side.lead_noise() == 0.25
    assert side.largest == 5.0
