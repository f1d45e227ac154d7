"""The configuration of a run: defaults and refusals."""

from pathlib import Path
from typing import Any

import pytest

from eaglebench.errors import InputFileError, UsageError
from eaglebench.plan.matrix import expand
from eaglebench.plan.option import Option
from eaglebench.plan.options import config_options, workload_of
from eaglebench.plan.replay import read_replay_file
from eaglebench.plan.run_config import (
    RunConfig,
    make_run_config,
    option_defaults,
    under_present_names,
)


def test_defaults_reproduce_the_first_seed() -> None:
    """EAGLE3, steps 2, top-k 1, draft tokens 3, page 1, greedy, radix against no-cache."""
    config = make_run_config({"suite": "mtbench"})
    cells = expand(config.matrix, config.limits).cells

    assert [cell.cell_id for cell in cells] == ["page1-chunkoff-topk1-steps2-draft3"]
    assert config.arms == ("radix", "no-cache")
    assert (config.temperature, config.max_new_tokens, config.warmup) == (0, 256, 1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"arms": ("radics",)}, "unknown arm 'radics'"),
        ({"arms": ()}, "no arm"),
        ({"arms": ("radix", "radix")}, "twice"),
        ({"temperature": -0.7}, "--temperature: "),
        ({"max_new_tokens": 0}, "--max-new-tokens"),
        ({"num_questions": 0}, "--num-questions"),
        ({"stop": ("",)}, "stop string is empty"),
        ({"context_length": 99, "max_total_tokens": 50}, "larger than the pool of 50"),
        ({"dtype": "int8"}, "--dtype"),
        ({"algorithm": "MEDUSA"}, "--algorithm"),
        ({"matrix": {"axes": {"page_size": (0,)}}}, "--page-size 0"),
        ({"modell": "x"}, "did you mean model"),
    ],
)
def test_impossible_values_are_refused(values: dict[str, Any], words: str) -> None:
    """The message names the flag."""
    with pytest.raises(UsageError) as caught:
        make_run_config({"suite": "mtbench", **values})

    assert words in caught.value.message


def test_configuration_survives_json() -> None:
    """What is written to the record is read back as the same configuration."""
    config = make_run_config({"suite": "tiny", "matrix": {"axes": {"page_size": (1, 16)}}})

    assert make_run_config(config.model_dump(mode="json")) == config


def test_short_dtype_names() -> None:
    """fp32 is float32."""
    assert make_run_config({"suite": "tiny", "dtype": "fp32"}).dtype == "float32"


def test_replay_file_is_read(tmp_path: Path) -> None:
    """Question, turn and tokens; prompts may be left out."""
    path = tmp_path / "reference.jsonl"
    path.write_text(
        '{"question_id": 81, "turn": 0, "prompt_token_ids": [1], "output_token_ids": [2, 3]}\n'
        '{"question_id": 81, "turn": 1, "output_token_ids": []}\n'
    )

    stored = read_replay_file(path)

    assert stored["81", 0].output_token_ids == (2, 3)
    assert stored["81", 0].prompt_token_ids == (1,)
    assert stored["81", 1].prompt_token_ids is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"question_id": 81, "output_token_ids": [2]}',
        '{"question_id": 81, "turn": 0}',
        '{"question_id": 81, "turn": 0, "output_token_ids": ["a"]}',
        '{"question_id": 81, "turn": 0, "output_token_ids": []}\n' * 2,
    ],
)
def test_bad_replay_files_are_refused(tmp_path: Path, text: str) -> None:
    """Empty files, missing fields, and turns that appear twice."""
    path = tmp_path / "reference.jsonl"
    path.write_text(text)

    with pytest.raises(InputFileError):
        read_replay_file(path)


def test_an_option_is_work_unless_its_declaration_says_otherwise() -> None:
    """What nobody thought of makes runs incomparable, and never equal."""
    options = option_defaults()
    declared = {n for n, option in config_options().items() if option.affects != "work"}

    assert set(options) - set(workload_of(options)) == declared | {"suite", "matrix"}
    assert Option(section="Engine").affects == "work"
    assert workload_of({"an_option_of_tomorrow": 3, "labels": {}}) == {"an_option_of_tomorrow": 3}


def test_every_field_has_its_option() -> None:
    """A field that could not be set would be a setting nobody knows of."""
    assert set(RunConfig.model_fields) - set(config_options()) == {"suite", "matrix"}


def test_former_names_are_read() -> None:
    """Runs, suites and callers that say `pairs` mean passes, and are comparable as before."""
    assert make_run_config({"suite": "toy", "pairs": "2:4"}).passes == "2:4"
    assert workload_of({"pairs": "8", "seed": 1}) == {"seed": 1}


def test_one_option_by_two_names_is_refused() -> None:
    """A suite or a run of another version can't say the passes twice."""
    with pytest.raises(UsageError, match="pairs and passes"):
        under_present_names({"pairs": "2", "passes": "8"})
