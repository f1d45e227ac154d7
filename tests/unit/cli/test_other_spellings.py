"""What people type who come from SGLang or vLLM: taken, or refused with the line to type."""

import json
from pathlib import Path

import pytest

from eaglebench.cli.main import main
from tests.stored_runs import invoke, scripted

DRY = ("run", "tiny", "--dry-run", "--format", "json")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path) -> object:
    """A folder without settings."""
    with scripted(tmp_path):
        yield


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("--steps 1 2 3", "--steps 1,2,3"),
        ("--num_steps 1 2", "--num_steps 1,2"),
        ("--page-size 1 16 --dry-run", "--page-size 1,16"),
        ("--chunked-prefill-size -1 64", "--chunked-prefill-size -1,64"),
        ("--arms radix no-cache", "--arms radix,no-cache"),
    ],
)
@pytest.mark.parametrize("order", ["run tiny {}", "run {} tiny"])
def test_a_list_without_commas_is_told_how_it_is_written(typed: str, hint: str, order: str) -> None:
    """With the line to type, wherever the suite stands."""
    status, out, err = invoke(*order.format(typed).split())

    assert (status, out) == (2, "")
    assert "the values of a list stand between commas" in err
    assert f"  try: {hint}\n" in err


@pytest.mark.parametrize("typed", ["--steps 3 tiny", "--steps 3 -n 2 tiny", "--arms radix tiny"])
def test_one_value_before_the_suite_is_no_list(typed: str) -> None:
    """What follows is something else."""
    assert invoke("run", *typed.split(), "--dry-run")[0] == 0


CONFIG = {"method": "eagle3", "model": "tiny-eagle3", "num_speculative_tokens": 3}


def test_the_speculative_config_of_vllm_is_taken() -> None:
    """It is what its keys are as options; they may stand beside it with the same values."""
    typed = json.dumps({**CONFIG, "draft_tensor_parallel_size": 1})
    options = ("--algorithm", "EAGLE3", "--draft-model", "tiny-eagle3")
    plain = invoke(*DRY, *options, "--num-speculative-tokens", "3")
    assert "steps3-draft4" in plain[1]

    assert invoke(*DRY, "--speculative-config", typed) == plain
    assert invoke(*DRY, f"--speculative-config={typed}", *options) == plain
    assert invoke(*DRY, env={"EAGLEBENCH_SPECULATIVE_CONFIG": typed}) == plain
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in CONFIG.items())
    Path("pyproject.toml").write_text(f"[tool.eaglebench.speculative-config]\n{lines}\n")
    assert invoke(*DRY) == plain


@pytest.mark.parametrize(
    ("typed", "more", "words"),
    [
        ('{"method": "ngram"}', (), "method is 'ngram'; expected eagle or eagle3"),
        ('{"methd": "eagle3"}', (), "unknown key 'methd'; did you mean method?"),
        ('{"draft_tensor_parallel_size": 4}', (), "one device is used here"),
        ('{"draft_sample_method": "beam"}', (), "expected greedy or probabilistic"),
        ('{"num_speculative_tokens": "x"}', (), "expected a whole number"),
        ("{method: eagle3}", (), "--speculative-config is no JSON"),
        ("[1]", (), "expected a JSON object"),
        ('{"model": "tiny"}', ("--draft-model", "tiny-eagle3"), "contradict each other"),
        ('{"model": "tiny"}', ("--algorithm", "NONE"), "--draft-model is without effect"),
    ],
)
def test_a_speculative_config_that_can_not_be_taken(
    typed: str, more: tuple[str, ...], words: str
) -> None:
    """Its faults are named by its keys, and nothing in it is passed over."""
    status, out, err = invoke(*DRY, "--speculative-config", typed, *more)

    assert (status, out) == (2, "")
    assert words in err


def test_the_page_of_aliases_tells_of_it() -> None:
    """Every key with the option it is."""
    page = invoke("help", "aliases")[1]

    assert "--speculative-config" in page
    assert all(key in page for key in CONFIG)
    assert main.name == "eaglebench"


@pytest.mark.parametrize("flag", ["--model", "--draft-model"])
def test_a_model_that_can_not_be_is_named_before_anything_else(flag: str) -> None:
    """Not the head that it would need; the nearest asset is offered."""
    far = invoke(*DRY, flag, "nosuchmodel")
    near = invoke(*DRY, flag, "tinny")

    assert (far[0], near[0]) == (2, 2)
    assert "error: there is no asset, folder or Hub id 'nosuchmodel'" in far[2]
    assert "assets: smollm2-135m" in far[2]
    assert "did you mean tiny" in near[2]
