"""Every kind of head and every variant against the plain version, in every published format."""

from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.model.heads.eagle import Eagle1Head
from tests.checkpoints import (
    AUX_LAYER_IDS,
    FORMATS,
    HIDDEN,
    VOCAB,
    make_eagle1_tensors,
    make_head_tensors,
    publish_eagle1,
    publish_eagle3,
)
from tests.head_runs import (
    NUM_TOKENS,
    SLOTS,
    TOLERANCE,
    assert_close,
    make_target,
    random_ids,
    run_head,
    run_plain1,
    run_plain3,
    states_of,
)
from tests.loaded_heads import load_head
from tests.plain_heads import plain_head


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("form", FORMATS)
def test_eagle3_of_every_format_equals_the_plain_version(
    tmp_path: Path, form: str, dtype: torch.dtype
) -> None:
    """Hidden states, logits and keys, over the states of the target that the format means."""
    is_silent = form == "safeailab"
    target = make_target(dtype, num_hidden_layers=8 if is_silent else 6)
    wanted = (2, 4, 5) if is_silent else AUX_LAYER_IDS
    folder = publish_eagle3(tmp_path, form, aux_layer_ids=None if is_silent else AUX_LAYER_IDS)
    head = load_head(folder, target)
    aux = states_of(target, wanted)
    expected = run_plain3(plain_head(make_head_tensors(), dtype), target.embedding.weight, aux)

    hidden, logits, pool = run_head(head, states_of(target, head.aux_layer_ids), [NUM_TOKENS])
    keys, _ = pool.gather(0, torch.from_numpy(SLOTS))

    assert head.aux_layer_ids == wanted
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])
    assert_close(keys.transpose(0, 1), expected[2])


@pytest.mark.parametrize("pieces", [[NUM_TOKENS], [4, 1, 6]])
def test_pieces_change_nothing(tmp_path: Path, pieces: list[int]) -> None:
    """An extend in chunks gives the plain version's states, within 1e-10."""
    target = make_target()
    head = load_head(publish_eagle3(tmp_path, "sglang"), target)
    aux = states_of(target, AUX_LAYER_IDS)
    plain = plain_head(make_head_tensors(), torch.float64)

    hidden, logits, _ = run_head(head, aux, pieces)

    expected = run_plain3(plain, target.embedding.weight, aux)
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])


VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    # what the file has besides, what its config says, what the plain version is told
    "fc bias": (("fc.bias",), {"bias": True}, {}),
    "own embeddings": (("embed_tokens",), {}, {}),
    "biases of q, k, v": (("qkv_bias",), {"attention_bias": True}, {}),
    "biases of q, k, v, o": (("qkv_bias", "o_bias"), {"attention_bias": True}, {}),
    "norms of q and k": (("qk_norm",), {}, {}),
    "fc_norm": (("fc_norm",), {"fc_norm": True}, {}),
    "use_aux_norm": (("fc_norm",), {"use_aux_norm": True}, {}),
    "norm_before_fc": (("input_norm",), {"norm_before_fc": True}, {}),
    "both norms": (
        ("input_norm", "fc_norm"),
        {"norm_before_fc": True, "fc_norm": True},
        {},
    ),
    "norm_before_residual": (
        (),
        {"norm_before_residual": True},
        {"norm_before_residual": True},
    ),
    "norm_output": ((), {"norm_output": True}, {"feeds_normed": True}),
    "EAGLE 3.1": (
        ("fc_norm",),
        {"fc_norm": True, "norm_output": True},
        {"feeds_normed": True},
    ),
    "window": ((), {"layer_types": ["sliding_attention"], "sliding_window": 3}, {"window": 3}),
    "positions of three kinds": (
        (),
        {"rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]}},
        {},
    ),
    "rope base": ((), {"rope_theta": 500.0}, {"theta": 500.0}),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["sglang", "speculators"])
def test_variants_of_eagle3_equal_the_plain_version(
    tmp_path: Path, form: str, variant: str, dtype: torch.dtype
) -> None:
    """Whatever a config can ask for, also on the levels that follow the extend."""
    extra, fields, told = VARIANTS[variant]
    tensors = make_head_tensors(*extra)
    target = make_target(dtype)
    head = load_head(publish_eagle3(tmp_path, form, tensors, **fields), target)
    aux = states_of(target, AUX_LAYER_IDS)
    embedding = tensors.get("embed_tokens.weight", target.embedding.weight).to(dtype)

    hidden, logits, _ = run_head(head, aux, [NUM_TOKENS])

    expected = run_plain3(plain_head(tensors, dtype, **told), embedding, aux)
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])


def test_variants_matter() -> None:
    """The plain version itself gives other logits for every variant that is told to it."""
    generator = torch.Generator().manual_seed(3)
    aux = torch.randn(NUM_TOKENS, 3 * HIDDEN, dtype=torch.float64, generator=generator)
    embedding = torch.randn(VOCAB, HIDDEN, dtype=torch.float64, generator=generator)
    usual = run_plain3(plain_head(make_head_tensors(), torch.float64), embedding, aux)[1]

    for extra, _, told in VARIANTS.values():
        plain = plain_head(make_head_tensors(*extra), torch.float64, **told)
        differs = not torch.allclose(run_plain3(plain, embedding, aux)[1], usual, atol=1e-3)
        assert differs == bool(set(extra) - {"embed_tokens"} or told)


def test_a_head_without_auxiliary_layers_takes_the_last_state(tmp_path: Path) -> None:
    """`use_aux_hidden_state` false: the state behind the final norm, without fc."""
    tensors = make_head_tensors()
    del tensors["fc.weight"]
    target = make_target()
    block = {"use_aux_hidden_state": False}
    folder = publish_eagle3(tmp_path, "vllm", tensors, aux_layer_ids=None, eagle_config=block)
    head = load_head(folder, target)
    states = states_of(target, (target.normed_state_id,))

    hidden, logits, _ = run_head(head, states_of(target, head.aux_layer_ids), [NUM_TOKENS])

    plain = plain_head(tensors, torch.float64)
    expected = run_plain3(plain, target.embedding.weight, states)
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])


def test_more_auxiliary_layers(tmp_path: Path) -> None:
    """Four states, the one after the last layer among them, make features as three do."""
    tensors = make_head_tensors("fc_norm", num_aux=4)
    target = make_target()
    wanted = (1, 3, 5, 6)
    folder = publish_eagle3(tmp_path, "speculators", tensors, aux_layer_ids=wanted, fc_norm=True)
    head = load_head(folder, target)
    aux = states_of(target, wanted)

    _, logits, _ = run_head(head, aux, [NUM_TOKENS])

    plain = plain_head(tensors, torch.float64)
    assert head.aux_layer_ids == wanted
    assert_close(logits, run_plain3(plain, target.embedding.weight, aux)[1])


@pytest.mark.parametrize("width", [16, 64])
def test_a_head_of_another_width_than_its_target(tmp_path: Path, width: int) -> None:
    """With embeddings of its own, over a target of another hidden size."""
    target = make_target(hidden_size=width)
    tensors = make_head_tensors("embed_tokens")
    tensors["fc.weight"] = (
        torch.randn(HIDDEN, 3 * width, generator=torch.Generator().manual_seed(4)) * 0.3
    )
    folder = publish_eagle3(tmp_path, "sglang", tensors, target_hidden_size=width)
    head = load_head(folder, target)
    aux = states_of(target, AUX_LAYER_IDS)

    _, logits, _ = run_head(head, aux, [NUM_TOKENS])

    plain = plain_head(tensors, torch.float64)
    embedded = plain.weights["embed_tokens.weight"][random_ids()][:NUM_TOKENS]
    _, expected = plain.run3(embedded, plain.fuse3(list(aux.chunk(3, dim=-1))))
    assert_close(logits[:NUM_TOKENS], expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("extra", [(), ("fc.bias",), ("embed_tokens",), ("qkv_bias",)])
@pytest.mark.parametrize("form", ["safeailab", "sglang", "vllm", "speculators"])
def test_eagle1_of_every_format_equals_the_plain_version(
    tmp_path: Path, form: str, extra: tuple[str, ...], dtype: torch.dtype
) -> None:
    """Over the target's state behind its final norm, through the target's own lm_head."""
    tensors = make_eagle1_tensors(*extra)
    target = make_target(dtype)
    head = load_head(publish_eagle1(tmp_path, form, tensors), target)
    states = states_of(target, (target.normed_state_id,))

    hidden, logits, _ = run_head(head, states_of(target, head.aux_layer_ids), [4, 1, 6])

    expected = run_plain1(plain_head(tensors, dtype), target, states)
    assert isinstance(head, Eagle1Head)
    assert head.draft_vocab_size == VOCAB
    assert head.target_ids(torch.tensor([5, 200])).tolist() == [5, 200]
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])


def test_eagle1_over_a_target_whose_lm_head_is_not_its_embeddings(tmp_path: Path) -> None:
    """Tokens come in through the one and go out through the other."""
    target = make_target(tie_word_embeddings=False)
    head = load_head(publish_eagle1(tmp_path, "sglang"), target)
    states = states_of(target, (target.normed_state_id,))

    _, logits, _ = run_head(head, states, [NUM_TOKENS])

    plain = plain_head(make_eagle1_tensors(), torch.float64)
    assert_close(logits, run_plain1(plain, target, states)[1])


@pytest.mark.parametrize("width", [VOCAB, VOCAB - 6, VOCAB + 8])
def test_eagle1_with_an_lm_head_of_its_own(tmp_path: Path, width: int) -> None:
    """It is used, said to be, and cut where its padding goes past the target's ids."""
    generator = torch.Generator().manual_seed(7)
    own = torch.randn(width, HIDDEN, generator=generator)
    target = make_target()
    folder = publish_eagle1(tmp_path, "safeailab", make_eagle1_tensors() | {"lm_head.weight": own})
    head = load_head(folder, target)
    states = states_of(target, (target.normed_state_id,))

    _, logits, _ = run_head(head, states, [NUM_TOKENS])

    plain = plain_head(make_eagle1_tensors() | {"lm_head.weight": own[:VOCAB]}, torch.float64)
    assert head.report.sources["lm_head.weight"] == "lm_head.weight"
    assert head.draft_vocab_size == min(width, VOCAB)
    assert_close(logits, run_plain1(plain, target, states)[1])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("extra", [(), ("embed_tokens",)])
def test_eagle3_without_an_lm_head(
    tmp_path: Path, dtype: torch.dtype, extra: tuple[str, ...], *, is_tied: bool
) -> None:
    """With the whole vocabulary it is the target's, or the embeddings where the config ties them."""
    tensors = make_head_tensors(*extra)
    for name in ("lm_head.weight", "d2t", "t2d"):
        del tensors[name]
    target = make_target(dtype, tie_word_embeddings=False)
    folder = publish_eagle3(
        tmp_path, "sglang", tensors, draft_vocab_size=None, tie_word_embeddings=is_tied
    )
    head = load_head(folder, target)
    aux = states_of(target, AUX_LAYER_IDS)
    embedding = tensors.get("embed_tokens.weight", target.embedding.weight).to(dtype)
    own = embedding if is_tied else target.model.get_output_embeddings().weight

    hidden, logits, _ = run_head(head, aux, [NUM_TOKENS])

    plain = plain_head(tensors | {"lm_head.weight": own}, dtype)
    expected = run_plain3(plain, embedding, aux)
    assert head.draft_vocab_size == VOCAB
    assert ("tie_word_embeddings" in head.report.sources["lm_head.weight"]) == is_tied
    assert_close(hidden, expected[0])
    assert_close(logits, expected[1])


def test_eagle3_with_the_whole_vocabulary(tmp_path: Path) -> None:
    """Its own lm_head over every id of the target, without tables."""
    tensors = make_head_tensors()
    del tensors["d2t"], tensors["t2d"]
    generator = torch.Generator().manual_seed(8)
    tensors["lm_head.weight"] = torch.randn(VOCAB, HIDDEN, generator=generator)
    target = make_target()
    head = load_head(publish_eagle3(tmp_path, "sglang", tensors, draft_vocab_size=VOCAB), target)
    aux = states_of(target, AUX_LAYER_IDS)

    _, logits, _ = run_head(head, aux, [NUM_TOKENS])

    plain = plain_head(tensors, torch.float64)
    assert head.target_ids(torch.tensor([5, 200])).tolist() == [5, 200]
    assert_close(logits, run_plain3(plain, target.embedding.weight, aux)[1])
