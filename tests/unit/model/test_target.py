"""The target against `transformers`' own forward."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from tests.checkpoints import FAMILIES, HIDDEN, LAYERS, VOCAB, make_model

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-5}
BACKENDS = ("loop", "padded")
NUM_TOKENS, NUM_SLOTS = 13, 64


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def make_ids(seed: int = 0) -> Tensor:
    """Random tokens."""
    return torch.randint(0, VOCAB, (NUM_TOKENS,), generator=torch.Generator().manual_seed(seed))


def make_slots(seed: int = 0, start: int = 1) -> np.ndarray:
    """Shuffled slots, apart for every start."""
    order = np.random.default_rng(seed).permutation(NUM_TOKENS)
    return (order + start).astype(np.int64)


def reference_logits(ids: Tensor, family: str, dtype: torch.dtype, **changes: Any) -> Tensor:
    """[num_tokens, vocab] of the untouched model."""
    model = make_model(family, dtype, **changes)
    with torch.inference_mode():
        logits: Tensor = model(ids[None]).logits[0]
    return logits


def run_pieces(
    target: Target, prompts: list[tuple[Tensor, np.ndarray]], pieces: list[int]
) -> list[Tensor]:
    """Logits of all tokens of all prompts, computed together, piece by piece."""
    pool = target.make_pool(NUM_SLOTS, fill=float("nan"))
    found: list[list[Tensor]] = [[] for _ in prompts]
    start = 0
    for size in pieces:
        end = start + size
        layout = make_layout(
            [LayoutRow(slots[:end], size) for _, slots in prompts],
            device=CPU,
            backend=target.attention_backend,
        )
        ids = torch.cat([ids[start:end] for ids, _ in prompts])
        positions = torch.arange(start, end).repeat(len(prompts))
        output = target.forward(ids, positions, layout, pool, torch.arange(len(ids)))
        for index, logits in enumerate(torch.split(output.logits, size)):
            found[index].append(logits)
        start = end
    return [torch.cat(parts) for parts in found]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_transformers(family: str, dtype: torch.dtype, backend: str) -> None:
    """Fused layers, paged attention and shuffled slots give the original's logits.

    The original rounds norms to float32 even under float64, hence the wide tolerance there.
    """
    ids = make_ids()
    target = Target(make_model(family, dtype), attention_backend=backend)
    (logits,) = run_pieces(target, [(ids, make_slots())], [NUM_TOKENS])

    assert torch.allclose(logits, reference_logits(ids, family, dtype), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_and_neighbours_change_nothing(family: str, backend: str) -> None:
    """Whole, in chunks, alone or beside another request: equal within 1e-10 in float64."""
    target = Target(make_model(family, torch.float64), attention_backend=backend)
    first, second = (make_ids(0), make_slots(0, 1)), (make_ids(1), make_slots(1, 30))
    whole = [run_pieces(target, [each], [NUM_TOKENS])[0] for each in (first, second)]

    for pieces in ([5, 1, 7], [1] * NUM_TOKENS):
        together = run_pieces(target, [first, second], pieces)
        for got, expected in zip(together, whole, strict=True):
            assert torch.allclose(got, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_window_is_the_models(backend: str) -> None:
    """A Mistral with a window narrower than the prompt sees what `transformers` lets it see."""
    ids = make_ids()
    target = Target(make_model("mistral", sliding_window=4), attention_backend=backend)
    (logits,) = run_pieces(target, [(ids, make_slots())], [NUM_TOKENS])
    narrow = reference_logits(ids, "mistral", torch.float32, sliding_window=4)
    wide = reference_logits(ids, "mistral", torch.float32, sliding_window=None)

    assert torch.allclose(logits, narrow, atol=1e-4)
    assert not torch.allclose(logits, wide, atol=1e-3)


def test_aux_id_names_the_layer_it_enters() -> None:
    """Id k is the hidden state that enters decoder layer k; 0 is the embedding itself."""
    ids = make_ids()
    model = make_model()
    with torch.inference_mode():
        states = model(ids[None], output_hidden_states=True).hidden_states
    target = Target(model)
    layout = make_layout([LayoutRow(make_slots(), NUM_TOKENS)], device=CPU, backend="loop")
    wanted = (0, 2, LAYERS - 1)
    output = target.forward(
        ids,
        torch.arange(NUM_TOKENS),
        layout,
        target.make_pool(NUM_SLOTS),
        torch.tensor([0]),
        wanted,
    )

    assert output.aux is not None
    for got, layer in zip(torch.split(output.aux, HIDDEN, dim=-1), wanted, strict=True):
        assert torch.allclose(got, states[layer][0], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_past_the_layers_are_around_the_final_norm(family: str) -> None:
    """With n layers, n is the state before the final norm and n + 1 is `last_hidden_state`."""
    ids = make_ids()
    model = make_model(family)
    with torch.inference_mode():
        expected = model.model(ids[None]).last_hidden_state[0]
    target = Target(model)
    layout = make_layout([LayoutRow(make_slots(), NUM_TOKENS)], device=CPU, backend="loop")
    wanted = (LAYERS, target.normed_state_id)
    output = target.forward(
        ids,
        torch.arange(NUM_TOKENS),
        layout,
        target.make_pool(NUM_SLOTS),
        torch.tensor([0]),
        wanted,
    )

    assert output.aux is not None
    before, after = torch.split(output.aux, HIDDEN, dim=-1)
    assert torch.allclose(after, expected, atol=1e-4)
    assert torch.allclose(target.decoder.norm(before), expected, atol=1e-4)
    assert not torch.allclose(before, expected, atol=1e-2)


def test_a_state_that_is_not_there_is_refused() -> None:
    """With the states there are."""
    target = Target(make_model())
    layout = make_layout([LayoutRow(make_slots(), NUM_TOKENS)], device=CPU, backend="loop")
    pool = target.make_pool(NUM_SLOTS)

    with pytest.raises(UsageError, match=r"no hidden state 8; it has 0 \.\. 7"):
        target.forward(
            make_ids(), torch.arange(NUM_TOKENS), layout, pool, torch.tensor([0]), (1, LAYERS + 2)
        )


def test_a_tied_target_is_saved_without_a_head_and_works(tmp_path: Path) -> None:
    """A folder without lm_head.weight gives the logits of its embeddings."""
    ids = make_ids()
    make_model().save_pretrained(tmp_path)
    target = Target.load(tmp_path, dtype=torch.float32, device=CPU)
    (logits,) = run_pieces(target, [(ids, make_slots())], [NUM_TOKENS])

    assert torch.allclose(logits, reference_logits(ids, "llama", torch.float32), atol=1e-4)


def test_all_end_tokens_count() -> None:
    """Several end tokens, in either config, are all known."""
    model = make_model(eos_token_id=[3, 5])
    model.generation_config.eos_token_id = 7

    assert set(Target(model).stop_token_ids) == {3, 5, 7}
