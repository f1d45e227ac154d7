"""No field is lost on the way into another format: written so that it is computed, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.heads.fit import facts_of
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.published import read_published
from eaglebench.model.target import Target
from eaglebench.training.conversion import Verifier, convert, save_converted
from tests.checkpoints import publish_eagle3
from tests.head_runs import assert_as_written, make_target
from tests.loaded_heads import load_head
from tests.unit.model.heads.test_any_config import change, changes, publish, the_target
from tests.unit.model.heads.test_reading import SPELLINGS

TOLERANCE = 1e-5
FORMS = ("vllm", "speculators")


def write_as(folder: Path, out: Path, to: HeadFormat, **fields: Any) -> Path:
    """Convert a folder; returns the new one."""
    target = facts_of(fields.pop("target"))
    head = read_published(folder, fields.pop("draft_config", None))
    save_converted(convert(head, to, target=target, verifier=Verifier("toy")), out)
    return out


def written_or_refused(folder: Path, out: Path, to: HeadFormat, target: Target) -> Path | None:
    """The head in another format; None where that can't say what the head is."""
    try:
        return write_as(folder, out, to, target=target)
    except CheckpointError as error:
        if "can't say" in error.message:
            return None
        raise


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("form", FORMS)
def test_fields_go_along_or_are_refused(tmp_path: Path, form: str, spelling: str) -> None:
    """Into every format: the new file, read plainly, is the old head; and so it is on the way back."""
    target = make_target()
    folder = publish_eagle3(tmp_path / "a", form, **SPELLINGS[spelling])
    first = load_head(folder, target)
    written = 0
    for to in (HeadFormat.SGLANG, HeadFormat.SPECULATORS):
        there = written_or_refused(folder, tmp_path / to, to, target)
        if there is None:
            continue
        written += 1
        assert_as_written(first, there, target, TOLERANCE)
        form_again = read_published(folder).form
        back = written_or_refused(there, tmp_path / f"{to}-back", form_again, target)
        if back is not None:
            assert_as_written(first, back, target, TOLERANCE)

    assert written > 0


@pytest.mark.parametrize(
    ("fields", "to", "words"),
    [
        ({"partial_rotary_factor": 0.5}, "speculators", "partial_rotary_factor"),
        ({"use_sliding_window": True, "sliding_window": 3}, "sglang", "a sliding window"),
        ({"norm_before_residual": True}, "sglang", "norm_before_residual"),
        ({"norm_output": True}, "safeailab", "norm_output"),
    ],
)
def test_what_a_format_can_not_say_is_refused(
    tmp_path: Path, fields: dict[str, Any], to: str, words: str
) -> None:
    """By name; nothing is written."""
    folder = publish_eagle3(tmp_path / "a", "vllm", **fields)
    with pytest.raises(CheckpointError, match=f"can't say: .*{words}"):
        write_as(folder, tmp_path / "b", HeadFormat(to), target=make_target())
    assert not (tmp_path / "b").exists()


def test_a_share_is_written_so_that_it_comes_back(tmp_path: Path) -> None:
    """SGLang and vLLM round dimensions down."""
    folder = publish_eagle3(tmp_path / "a", "vllm", rope_parameters={"partial_rotary_factor": 0.75})

    config = json.loads(
        (
            write_as(folder, tmp_path / "b", HeadFormat.SGLANG, target=make_target())
            / "config.json"
        ).read_text()
    )

    assert config["partial_rotary_factor"] == 0.75


@pytest.mark.parametrize("to", ["sglang", "speculators"])
def test_what_is_harmless_goes_along(tmp_path: Path, to: str) -> None:
    """Tokens and settings of training are the head's as well."""
    said: dict[str, Any] = {
        "bos_token_id": 7,
        "eos_token_id": [8, 9],
        "initializer_range": 0.5,
        "use_cache": True,
    }
    folder = publish_eagle3(tmp_path / "a", "vllm", **said)

    out = write_as(folder, tmp_path / "b", HeadFormat(to), target=make_target())

    config = json.loads((out / "config.json").read_text())
    assert {name: config[name] for name in said} == said


def test_what_is_said_otherwise_is_written(tmp_path: Path) -> None:
    """The new head is the one that was asked for."""
    target = make_target()
    folder = publish_eagle3(tmp_path / "a", "specforge", norm_output=True)
    changed = {"norm_output": False, "rope_theta": 300.0, "max_position_embeddings": 50}

    out = write_as(folder, tmp_path / "b", HeadFormat.SGLANG, target=target, draft_config=changed)

    assert_as_written(load_head(folder, target, draft_config=changed), out, target, TOLERANCE)


def converts_or_refuses(base: str, changed: list[Any], folder: Path) -> int:
    """Formats a head could be written in; in each it is the head that it was."""
    target = the_target()
    publish(base, folder / "a")
    change(folder / "a", changed)
    try:
        first = load_head(folder / "a", target)
    except UsageError:
        return 0
    written = 0
    for to in HeadFormat:
        there = written_or_refused(folder / "a", folder / to, to, target)
        if there is not None:
            written += 1
            assert_as_written(first, there, target, TOLERANCE)
    return written


@settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(changes())
def test_any_config_is_converted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, found: tuple[str, list[Any]]
) -> None:
    """Whatever loads is the same head in every format that takes it."""
    converts_or_refuses(*found, tmp_path_factory.mktemp("heads"))


@pytest.mark.slow
@settings(max_examples=800, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(changes())
def test_very_many_configs_are_converted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, found: tuple[str, list[Any]]
) -> None:
    """The same, many times."""
    converts_or_refuses(*found, tmp_path_factory.mktemp("heads"))
