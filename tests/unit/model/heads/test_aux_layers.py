"""Auxiliary layer ids: the off-by-one between projects, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.aux_layers import (
    AuxLayers,
    count_as_output,
    default_aux_layer_ids,
    resolve_aux_layers,
)
from eaglebench.model.heads.config import parse_config
from eaglebench.model.heads.format import Algorithm, HeadFormat
from tests.checkpoints import make_head_config

KEY = "eagle_aux_hidden_state_layer_ids"
DEEP = 32


def resolve(
    form: str,
    *,
    outer: list[int] | None = None,
    nested: list[int] | None = None,
    num_layers: int | None = DEEP,
    algorithm: Algorithm = Algorithm.EAGLE3,
    given: tuple[int, ...] | None = None,
    **fields: Any,
) -> AuxLayers:
    """The states that feed a head whose config holds these ids."""
    fields = {"eagle_config": {KEY: nested} if nested is not None else None, **fields}
    config = parse_config(make_head_config(**fields, **({KEY: outer})), Path("config.json"))
    return resolve_aux_layers(config, algorithm, HeadFormat(form), num_layers, given)


@pytest.mark.parametrize("form", HeadFormat)
def test_silent_configs_mean_the_same_everywhere(form: str) -> None:
    """2, n // 2 and n - 3 enter: states after so many layers, and there is a warning."""
    found = resolve(form)

    assert (found.written, found.ids) == (None, (2, 16, 29))
    assert "(2, 16, 29)" in str(found.warning)


@pytest.mark.parametrize("form", ["safeailab", "sglang"])
def test_nested_ids_count_outputs(form: str) -> None:
    """SpecForge writes the default as 1, n // 2 - 1, n - 4, and SGLang adds one."""
    found = resolve(form, nested=[1, 15, 28])

    assert (found.written, found.ids, found.warning) == ((1, 15, 28), (2, 16, 29), None)
    assert "in eagle_config alone, so as sglang counts" in found.counting


def test_nested_ids_that_are_not_the_default_are_doubtful() -> None:
    """They are read as SGLang does; the warning names the states and the way out."""
    found = resolve("safeailab", nested=[5, 6, 7])

    assert found.ids == (6, 7, 8)
    assert "(5, 6, 7) in eagle_config are the states (6, 7, 8) as SGLang counts" in str(
        found.warning
    )
    assert "--aux-layer-ids" in str(found.warning)


@pytest.mark.parametrize("form", HeadFormat)
def test_ids_at_the_top_level_count_layers_passed(form: str) -> None:
    """VLLM looks there, SGLang doesn't: id k is the state after k layers."""
    found = resolve(form, outer=[0, 16, 32])

    assert (found.ids, found.warning) == ((0, 16, 32), None)
    assert "at the top level of config.json, so as vllm counts" in found.counting


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("speculators", ["Eagle3Speculator"]),
        ("sglang", ["Eagle3LlamaForCausalLM"]),
        ("sglang", ["Eagle3DraftModel"]),
    ],
)
def test_nested_ids_of_vllm_stand_as_they_are(form: str, names: list[str]) -> None:
    """By the format or by the architecture."""
    found = resolve(form, nested=[1, 15, 28], architectures=names)

    assert found.ids == (1, 15, 28)
    assert "for vllm or speculators" in found.counting


@pytest.mark.parametrize("nested", [[2, 16, 29], [1, 16, 32]])
def test_nested_ids_that_can_not_be_shifted(nested: list[int]) -> None:
    """The default as vLLM counts it, and ids that hold n, stand as they are, with a warning."""
    found = resolve("sglang", nested=nested)

    assert found.ids == tuple(nested)
    assert str(tuple(index + 1 for index in nested)) in str(found.warning)


@pytest.mark.parametrize("nested", [[1, 15, 28], [2, 16, 29]])
def test_both_places_in_agreement(nested: list[int]) -> None:
    """Shifted or not, as long as one of the readings is the other place's."""
    assert resolve("sglang", outer=[2, 16, 29], nested=nested).ids == (2, 16, 29)


def test_both_places_in_conflict() -> None:
    """All three readings are named."""
    with pytest.raises(CheckpointError, match=r"\(2, 16, 29\).*\(5, 6, 7\).*\(6, 7, 8\)"):
        resolve("sglang", outer=[2, 16, 29], nested=[5, 6, 7])


def test_given_ids_overrule_everything() -> None:
    """Also a config that contradicts itself; what it says is still shown."""
    found = resolve("sglang", outer=[2, 16, 29], nested=[5, 6, 7], given=(1, 8, 30))

    assert (found.written, found.ids, found.warning) == ((2, 16, 29), (1, 8, 30), None)
    assert "--aux-layer-ids" in found.counting
    assert resolve("sglang", given=(1, 2, 3), num_layers=4).ids == (1, 2, 3)


@pytest.mark.parametrize(
    ("given", "fields", "message"),
    [
        ((1, 3, 33), {}, "layer 33"),
        ((3, 1, 5), {}, "not different layers in order"),
        ((1, 3), {"num_aux_hidden_states": 3}, "num_aux_hidden_states 3"),
        ((1, 3, 5), {"eagle_config": {"use_aux_hidden_state": False}}, "no auxiliary layers"),
        ((1, 3, 5), {"algorithm": Algorithm.EAGLE}, "no auxiliary layers"),
    ],
)
def test_given_ids_that_can_not_feed_the_head(
    given: tuple[int, ...], fields: dict[str, Any], message: str
) -> None:
    """The target must have them, the head must take them."""
    with pytest.raises(CheckpointError, match=message):
        resolve("sglang", given=given, **fields)


@pytest.mark.parametrize("outer", [[1, 1, 3], [5, 1, 3]])
def test_layers_out_of_order_are_refused(outer: list[int]) -> None:
    """Engines gather states as the target passes them, once each: they would feed another head."""
    with pytest.raises(CheckpointError, match="not different layers in order"):
        resolve("sglang", outer=outer)


def test_a_count_that_contradicts_the_ids_is_refused() -> None:
    """Both are named."""
    with pytest.raises(CheckpointError, match=r"num_aux_hidden_states 4, .* \(1, 3, 5\)"):
        resolve("sglang", outer=[1, 3, 5], num_aux_hidden_states=4)


def test_empty_lists_are_silence() -> None:
    """As some files have them."""
    assert resolve("sglang", outer=[], nested=[]).ids == (2, 16, 29)


@pytest.mark.parametrize(
    ("outer", "nested", "message"),
    [
        ([1, 3, 33], None, "layer 33"),
        ([-1, 3, 5], None, "layer -1"),
        (None, [1, 3, 33], "layer 34"),
    ],
)
def test_states_the_target_does_not_have(
    outer: list[int] | None, nested: list[int] | None, message: str
) -> None:
    """The first one is named as the engine counts."""
    with pytest.raises(CheckpointError, match=rf"{message} .* 0 \.\. 31, and 32"):
        resolve("sglang", outer=outer, nested=nested)


@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [(Algorithm.EAGLE, {}), (Algorithm.EAGLE3, {"eagle_config": {"use_aux_hidden_state": False}})],
)
def test_heads_without_auxiliary_layers(algorithm: Algorithm, fields: dict[str, Any]) -> None:
    """They take the state behind the final norm, n + 1."""
    assert resolve("sglang", algorithm=algorithm, **fields).ids == (DEEP + 1,)


def test_without_a_target_the_default_stays_open() -> None:
    """Given ids are converted all the same."""
    assert resolve("sglang", num_layers=None).ids is None
    assert resolve("sglang", nested=[1, 15, 28], num_layers=None).ids == (2, 16, 29)


def test_counting_back() -> None:
    """Ours as SGLang counts; the embeddings are the output of no layer."""
    assert count_as_output((2, 16, 29)) == (1, 15, 28)
    with pytest.raises(CheckpointError, match="0 is the embeddings"):
        count_as_output((0, 16, 29))


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5, 6])
def test_shallow_targets_have_no_default(num_layers: int) -> None:
    """The message comes with a way out."""
    with pytest.raises(CheckpointError) as caught:
        default_aux_layer_ids(num_layers)
    assert KEY in (caught.value.hint or "")
    assert "--aux-layer-ids" in (caught.value.hint or "")


# --- the words of other trainers --------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "ids", "words"),
    [
        ({"aux_hidden_state_layer_ids": [2, 16, 29]}, (2, 16, 29), "the state after k layers"),
        ({"target_layer_ids": [1, 15, 28]}, (2, 16, 29), "as trainers count"),
        ({"aux_hidden_states_layers": [1, 15, 28]}, (2, 16, 29), "as trainers count"),
        ({"eagle_config": {"target_layer_ids": [1, 15, 28]}}, (2, 16, 29), "as trainers count"),
    ],
)
def test_other_words_are_read(fields: dict[str, Any], ids: tuple[int, ...], words: str) -> None:
    """Each as its trainer counts; what gives the default deserves no word."""
    found = resolve("sglang", **fields)

    assert (found.ids, found.warning) == (ids, None)
    assert words in found.counting


def test_other_words_for_other_layers_are_doubtful() -> None:
    """The warning names the field and the states."""
    found = resolve("sglang", target_layer_ids=[4, 5, 6])

    assert found.ids == (5, 6, 7)
    assert "(4, 5, 6) in target_layer_ids are the states (5, 6, 7)" in str(found.warning)


@pytest.mark.parametrize(
    "name", ["capture_layer_ids", "layers_to_capture", "eagle3_aux_layers", "aux_layer_ids"]
)
def test_words_that_are_not_known_are_no_silence(name: str) -> None:
    """Taking the default instead would feed every step with other states."""
    with pytest.raises(CheckpointError, match=f"{name} .* auxiliary layers in words") as caught:
        parse_config(make_head_config(**{name: [1, 2, 3]}), Path("config.json"))
    assert "--aux-layer-ids" in (caught.value.hint or "")


def test_two_words_that_do_not_agree() -> None:
    """Both are named."""
    with pytest.raises(CheckpointError, match=r"eagle_aux_hidden.*target_layer_ids .*don't agree"):
        resolve("sglang", outer=[2, 16, 29], target_layer_ids=[2, 16, 29])


@pytest.mark.parametrize("algorithm", [Algorithm.EAGLE, Algorithm.EAGLE3])
def test_layers_of_a_head_that_takes_none(algorithm: Algorithm) -> None:
    """A contradiction, not something to pass over."""
    block: dict[str, Any] = {"eagle_config": {"use_aux_hidden_state": False}}
    with pytest.raises(CheckpointError, match="has no auxiliary layers"):
        resolve("sglang", algorithm=algorithm, target_layer_ids=[1, 2, 3], **block)


@pytest.mark.parametrize(
    ("outer", "nested", "ids"), [([1, 17, 32], None, (1, 17, 32)), (None, [1, 17, 32], (2, 18, 33))]
)
def test_layers_of_gpt_oss_are_counted_in_two_ways(
    outer: list[int] | None, nested: list[int] | None, ids: tuple[int, ...]
) -> None:
    """Wherever they stand: SGLang and vLLM disagree, and the warning names both readings."""
    found = resolve("sglang", outer=outer, nested=nested, num_layers=36)

    assert found.ids == ids
    assert "vLLM takes the states (1, 17, 32), SGLang since its #32334 (2, 18, 33)" in str(
        found.warning
    )
    assert resolve("sglang", outer=[1, 17, 32], num_layers=48).warning is None
