"""One format written as another: equal logits, fields that both engines read, refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.checkpoint import canonical_name, read_tensors
from eaglebench.model.heads.fit import TargetFacts, facts_of
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.published import read_published
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from eaglebench.training.conversion import Verifier, convert, save_converted
from tests.checkpoints import (
    AUX_LAYER_IDS,
    DRAFT_VOCAB,
    HIDDEN,
    VOCAB,
    make_eagle1_tensors,
    make_head_tensors,
    make_model,
    publish_eagle1,
    publish_eagle3,
)
from tests.loaded_heads import load_head

CPU = torch.device("cpu")
NUM_TOKENS = 9
KEY = "eagle_aux_hidden_state_layer_ids"


def make_target(num_layers: int = 6) -> Target:
    """A target in float64."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=torch.float64, num_hidden_layers=num_layers))


def write_as(folder: Path, out: Path, form: str, target: TargetFacts | None = None) -> Path:
    """Convert a folder; returns the new one."""
    verifier = Verifier("toy", ("LlamaForCausalLM",))
    converted = convert(read_published(folder), HeadFormat(form), target=target, verifier=verifier)
    save_converted(converted, out)
    return out


def config_of(folder: Path) -> dict[str, Any]:
    """The config that was written."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def logits_of(head: DraftHead) -> Tensor:
    """Logits of a few slots, and of a level behind them."""
    generator = torch.Generator().manual_seed(6)
    ids = torch.randint(0, VOCAB, (NUM_TOKENS + 1,), generator=generator)
    width = len(head.aux_layer_ids) * HIDDEN
    aux = torch.randn(NUM_TOKENS, width, generator=generator, dtype=torch.float64)
    pool = head.make_pool(16)
    slots = np.arange(NUM_TOKENS + 1)
    hidden = head.forward(
        ids[:NUM_TOKENS],
        head.fuse(aux),
        torch.arange(NUM_TOKENS),
        make_layout([LayoutRow(slots[:NUM_TOKENS], NUM_TOKENS)], device=CPU, backend="loop"),
        pool,
    )
    last = head.forward(
        ids[-1:],
        hidden[-1:],
        torch.tensor([NUM_TOKENS]),
        make_layout([LayoutRow(slots, 1)], device=CPU, backend="loop"),
        pool,
    )
    return head.logits(torch.cat([hidden, last]))


def assert_same_head(one: DraftHead, other: DraftHead) -> None:
    """Equal logits over the same states of the target, and the same token ids."""
    drafted = torch.arange(one.draft_vocab_size)

    assert one.aux_layer_ids == other.aux_layer_ids
    assert one.max_positions == other.max_positions
    assert torch.equal(one.target_ids(drafted), other.target_ids(drafted))
    assert torch.equal(logits_of(one), logits_of(other))


@pytest.mark.parametrize("to", ["safeailab", "sglang", "speculators"])
@pytest.mark.parametrize("form", ["safeailab", "specforge", "sglang", "vllm", "speculators"])
def test_eagle3_goes_there_and_back(tmp_path: Path, form: str, to: str) -> None:
    """The plain head can be said in every format: equal logits after one and two conversions."""
    target = make_target(8)
    ids = None if form == "safeailab" else (2, 4, 5)  # the default of a target of eight layers
    folder = publish_eagle3(tmp_path / "a", form, aux_layer_ids=ids)
    facts = facts_of(target)

    there = write_as(folder, tmp_path / "b", to, facts)
    back = write_as(there, tmp_path / "c", read_published(folder).form, facts)

    first = load_head(folder, target)
    assert read_published(there).form == to
    assert_same_head(first, load_head(there, target))
    assert_same_head(first, load_head(back, target))
    assert set(map(canonical_name, read_tensors(back))) == set(
        map(canonical_name, read_tensors(folder))
    )


@pytest.mark.parametrize("to", ["safeailab", "sglang", "speculators"])
@pytest.mark.parametrize("form", ["safeailab", "sglang", "vllm", "speculators"])
@pytest.mark.parametrize("extra", [(), ("fc.bias",), ("embed_tokens", "qkv_bias")])
def test_eagle1_goes_there_and_back(
    tmp_path: Path, form: str, to: str, extra: tuple[str, ...]
) -> None:
    """With and without biases and embeddings of its own."""
    target = make_target()
    folder = publish_eagle1(tmp_path / "a", form, make_eagle1_tensors(*extra))

    there = write_as(folder, tmp_path / "b", to)

    first = load_head(folder, target)
    assert read_published(there).form == to
    assert_same_head(first, load_head(there, target))
    if "qkv_bias" not in extra:  # with zeros for o that SafeAILab has no place for
        back = write_as(there, tmp_path / "c", read_published(folder).form)
        assert_same_head(first, load_head(back, target))


SAYABLE: list[tuple[str, str, tuple[str, ...], dict[str, Any]]] = [
    # from, to, what the file has besides, what its config says
    ("sglang", "speculators", ("fc_norm",), {"fc_norm": True, "norm_output": True}),
    ("speculators", "sglang", ("fc_norm",), {"fc_norm": True, "norm_output": True}),
    ("sglang", "speculators", ("input_norm",), {"norm_before_fc": True}),
    ("speculators", "sglang", ("input_norm",), {"norm_before_fc": True}),
    ("vllm", "speculators", (), {"norm_before_residual": True}),
    ("vllm", "speculators", ("qk_norm",), {}),
    ("vllm", "speculators", ("qkv_bias",), {}),
    ("vllm", "speculators", (), {"layer_types": ["sliding_attention"], "sliding_window": 3}),
    ("specforge", "sglang", ("fc.bias",), {"bias": True}),
    ("specforge", "sglang", ("embed_tokens",), {"target_hidden_size": HIDDEN}),
    ("specforge", "sglang", (), {"rope_theta": 5e5, "max_position_embeddings": 77}),
    (
        "specforge",
        "speculators",
        (),
        {"rope_theta": None, "rope_parameters": {"rope_type": "linear", "factor": 4.0}},
    ),
    (
        "speculators",
        "sglang",
        (),
        {"rope_parameters": {"rope_theta": 300.0, "rope_type": "linear", "factor": 2.0}},
    ),
]


@pytest.mark.parametrize(("form", "to", "extra", "fields"), SAYABLE)
def test_variants_that_can_be_said(
    tmp_path: Path, form: str, to: str, extra: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """Equal logits in the other format."""
    target = make_target()
    folder = publish_eagle3(tmp_path / "a", form, make_head_tensors(*extra), **fields)

    there = write_as(folder, tmp_path / "b", to, facts_of(target))

    assert_same_head(load_head(folder, target), load_head(there, target))


UNSAYABLE: list[tuple[str, str, tuple[str, ...], dict[str, Any], str]] = [
    ("sglang", "safeailab", ("fc_norm",), {"fc_norm": True}, "fc_norm"),
    ("sglang", "safeailab", (), {"norm_output": True}, "norm_output"),
    ("sglang", "safeailab", ("input_norm",), {"norm_before_fc": True}, "norm_before_fc"),
    ("sglang", "safeailab", (), {}, r"\(1, 3, 5\) instead of \(2, 3, 3\)"),
    ("vllm", "sglang", (), {"norm_before_residual": True}, "norm_before_residual"),
    ("vllm", "sglang", ("qkv_bias",), {}, "biases of q, k and v"),
    ("vllm", "sglang", ("qk_norm",), {}, "norms of q and k"),
    ("sglang", "speculators", ("fc.bias",), {}, "a bias of fc"),
    ("vllm", "safeailab", ("o_bias",), {}, "a bias of o"),
    (
        "speculators",
        "sglang",
        (),
        {"layer_types": ["sliding_attention"], "sliding_window": 3},
        "a sliding window",
    ),
]


@pytest.mark.parametrize(("form", "to", "extra", "fields", "words"), UNSAYABLE)
def test_what_can_not_be_said_is_refused(
    tmp_path: Path, form: str, to: str, extra: tuple[str, ...], fields: dict[str, Any], words: str
) -> None:
    """With what stands in the way, and nothing is written."""
    folder = publish_eagle3(tmp_path / "a", form, make_head_tensors(*extra), **fields)

    with pytest.raises(CheckpointError, match=f"can't be written as {to}.*{words}"):
        write_as(folder, tmp_path / "b", to, facts_of(make_target()))
    assert not (tmp_path / "b").exists()


def test_all_obstacles_are_listed(tmp_path: Path) -> None:
    """Not one after another."""
    tensors = make_head_tensors("fc_norm", "qk_norm")
    folder = publish_eagle3(tmp_path / "a", "sglang", tensors, fc_norm=True, norm_output=True)

    with pytest.raises(CheckpointError, match="norms of q and k; fc_norm; norm_output"):
        write_as(folder, tmp_path / "b", "safeailab", facts_of(make_target()))


def test_embeddings_as_features_are_no_output(tmp_path: Path) -> None:
    """Auxiliary layer 0 has no number as SGLang counts."""
    folder = publish_eagle3(tmp_path / "a", "speculators", aux_layer_ids=(0, 3, 5))

    with pytest.raises(CheckpointError, match="auxiliary layer 0"):
        write_as(folder, tmp_path / "b", "sglang")


def test_default_layers_need_the_target_to_be_known(tmp_path: Path) -> None:
    """Ids can be left out of SafeAILab's format only where they are the default."""
    folder = publish_eagle3(tmp_path / "a", "sglang", aux_layer_ids=(2, 4, 5))

    with pytest.raises(CheckpointError, match="name the target"):
        write_as(folder, tmp_path / "b", "safeailab")
    written = write_as(folder, tmp_path / "c", "safeailab", facts_of(make_target(8)))
    assert KEY not in (written / "config.json").read_text()


def test_both_engines_read_the_same_layers(tmp_path: Path) -> None:
    """SGLang's format names them twice: as vLLM counts outside, as SGLang does inside."""
    folder = publish_eagle3(tmp_path / "a", "speculators")

    config = config_of(write_as(folder, tmp_path / "b", "sglang"))

    assert config[KEY] == list(AUX_LAYER_IDS)
    assert config["eagle_config"][KEY] == [index - 1 for index in AUX_LAYER_IDS]


def test_engines_get_the_biases_they_make_room_for(tmp_path: Path) -> None:
    """SGLang gives fc of EAGLE-1 a bias in any case; in EAGLE-3 `bias` is that of fc and of o."""
    one = write_as(publish_eagle1(tmp_path / "a", "safeailab"), tmp_path / "b", "sglang")
    folder = publish_eagle3(tmp_path / "c", "sglang", make_head_tensors("fc.bias"))
    three = write_as(folder, tmp_path / "d", "sglang")

    assert torch.equal(read_tensors(one)["fc.bias"], torch.zeros(HIDDEN))
    assert "bias" not in config_of(one)
    assert torch.equal(read_tensors(three)["midlayer.self_attn.o_proj.bias"], torch.zeros(HIDDEN))
    assert config_of(three)["bias"] is True


@pytest.mark.parametrize(
    ("to", "layer"),
    [("safeailab", "midlayer."), ("sglang", "midlayer."), ("speculators", "layers.0.")],
)
def test_the_layer_is_called_as_readers_of_the_format_call_it(
    tmp_path: Path, to: str, layer: str
) -> None:
    """SGLang drops tensors of an EAGLE-3 head that are called layers.0; vLLM knows both names."""
    folder = publish_eagle3(tmp_path / "a", "vllm", aux_layer_ids=(2, 4, 5))

    written = read_tensors(write_as(folder, tmp_path / "b", to, facts_of(make_target(8))))

    inner = [name for name in written if name.count(".") > 1]
    assert len(inner) == 10
    assert all(name.startswith(layer) for name in inner)


@pytest.mark.parametrize(
    ("extra", "fields", "expected"),
    [
        ((), {}, ()),
        (("fc_norm",), {"fc_norm": True, "norm_output": True}, ("norm_output, fc_norm",)),
        (("input_norm",), {"norm_before_fc": True}, ("norm_before_fc",)),
    ],
)
def test_versions_that_would_run_another_head_are_named(
    tmp_path: Path, extra: tuple[str, ...], fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """SGLang 0.5.4 passes over fields and norms that came later."""
    folder = publish_eagle3(tmp_path, "vllm", make_head_tensors(*extra), **fields)

    converted = convert(read_published(folder), HeadFormat.SGLANG, target=None, verifier=Verifier())

    assert len(converted.warnings) == len(expected)
    assert all(words in text for words, text in zip(expected, converted.warnings, strict=True))
    assert all("SGLang 0.5.4" in text for text in converted.warnings)


def test_what_was_doubtful_is_said(tmp_path: Path) -> None:
    """The new file says it at the top level, where no doubt can be seen any more."""
    folder = publish_eagle3(tmp_path, "specforge", aux_layer_ids=(2, 3, 4))
    facts = facts_of(make_target())

    converted = convert(
        read_published(folder), HeadFormat.SGLANG, target=facts, verifier=Verifier()
    )

    (warning,) = converted.warnings
    assert "(1, 2, 3) in eagle_config are the states (2, 3, 4) as SGLang counts" in warning


def test_given_layers_are_written(tmp_path: Path) -> None:
    """What overrules the config of the one head is said in the config of the other."""
    folder = publish_eagle3(tmp_path / "a", "specforge", aux_layer_ids=(2, 3, 4))
    converted = convert(
        read_published(folder),
        HeadFormat.SGLANG,
        target=None,
        verifier=Verifier(),
        aux_layer_ids=(1, 2, 3),
    )
    save_converted(converted, tmp_path / "b")

    config = config_of(tmp_path / "b")
    assert config[KEY] == [1, 2, 3]
    assert config["eagle_config"][KEY] == [0, 1, 2]
    assert load_head(tmp_path / "b", make_target()).aux_layer_ids == (1, 2, 3)


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_borrowed_lm_head_stays_borrowed(tmp_path: Path, *, is_tied: bool) -> None:
    """SGLang reads silence on draft_vocab_size as the target's; other formats can't say it."""
    tensors = make_head_tensors()
    for name in ("lm_head.weight", "d2t", "t2d"):
        del tensors[name]
    folder = publish_eagle3(
        tmp_path / "a", "sglang", tensors, draft_vocab_size=None, tie_word_embeddings=is_tied
    )
    target = make_target()

    there = write_as(folder, tmp_path / "b", "sglang", facts_of(target))

    assert "draft_vocab_size" not in config_of(there)
    assert config_of(there)["tie_word_embeddings"] is is_tied
    assert_same_head(load_head(folder, target), load_head(there, target))
    with pytest.raises(CheckpointError, match="an lm_head that is the target's"):
        write_as(folder, tmp_path / "c", "speculators", facts_of(target))


def test_tables_are_written_as_offsets_and_marks(tmp_path: Path) -> None:
    """Absolute ids become offsets, and a missing `t2d` is made."""
    tensors = make_head_tensors()
    tensors["d2t"] = 3 * torch.arange(DRAFT_VOCAB) + 60
    del tensors["t2d"]
    folder = publish_eagle3(tmp_path / "a", "sglang", tensors)

    written = read_tensors(write_as(folder, tmp_path / "b", "sglang"))

    assert torch.equal(written["d2t"], 2 * torch.arange(DRAFT_VOCAB) + 60)
    assert torch.nonzero(written["t2d"]).flatten().tolist() == tensors["d2t"].tolist()


def test_speculators_names_the_verifier(tmp_path: Path) -> None:
    """As it was called, with its architectures."""
    config = config_of(
        write_as(publish_eagle3(tmp_path / "a", "sglang"), tmp_path / "b", "speculators")
    )

    assert config["speculators_model_type"] == "eagle3"
    assert config["speculators_config"]["verifier"] == {
        "name_or_path": "toy",
        "architectures": ["LlamaForCausalLM"],
    }
    assert config["transformer_layer_config"]["vocab_size"] == VOCAB


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A folder with something in it is refused."""
    folder = publish_eagle3(tmp_path / "a", "sglang")

    with pytest.raises(UsageError, match="not empty"):
        write_as(folder, folder, "speculators")
