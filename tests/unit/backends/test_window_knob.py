"""`--sliding-window`: one loaded model, its window layers seen through other windows."""

import json
import shutil
from pathlib import Path

import pytest

from eaglebench.backends.loading import load_embedded
from eaglebench.errors import UsageError
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import WINDOW_OFF, EngineKnobs
from eaglebench.records.models import ModelChoice
from tests.engines import TINY, TINY_HEAD
from tests.prompts import question_prompts

NARROW, WIDE = 8, 24


def make_folder(root: Path, window: int | None) -> Path:
    """The tiny target with a window in every odd layer; None is the target as it is."""
    folder = root / f"window-{window}"
    shutil.copytree(TINY, folder)
    config = json.loads((folder / "config.json").read_text())
    if window is not None:
        count = config["num_hidden_layers"]
        types = ["sliding_attention" if n % 2 else "full_attention" for n in range(count)]
        config |= {"layer_types": types, "sliding_window": window}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def answers(folder: Path, *knob_values: int | None) -> list[tuple[tuple[int, ...], ...]]:
    """Answers of one loaded pair under each of these knobs, twice the same prompt for a hit."""
    choice = ModelChoice(target=str(folder), draft=str(TINY_HEAD), dtype="float64", num_threads=1)
    runtime = load_embedded(choice)
    found = []
    for value in knob_values:
        backend = runtime.backend(EngineKnobs(sliding_window=value, max_total_tokens=512))
        requests = [
            GenerationRequest(
                request_id=f"{number}", prompt_token_ids=question_prompts()[3], max_new_tokens=24
            )
            for number in range(2)
        ]
        observed = list(backend.generate(requests))
        assert (observed[1].counters.cached_tokens or 0) > WIDE
        found.append(tuple(o.output_token_ids for o in observed))
    return found


def test_a_set_window_is_that_of_a_model_made_with_it(tmp_path: Path) -> None:
    """Whichever way the model came; a window that is off is the model without one."""
    narrow = make_folder(tmp_path, NARROW)
    own, wide, off, again = answers(narrow, None, WIDE, WINDOW_OFF, None)
    (made_wide,) = answers(make_folder(tmp_path, WIDE), None)
    (without,) = answers(make_folder(tmp_path, None), None)

    assert wide == made_wide
    assert off == without
    assert again == own
    assert len({own, wide, off}) == 3


def test_a_model_without_window_layers_refuses_one() -> None:
    """There is nothing to set."""
    runtime = load_embedded(ModelChoice(target=str(TINY), num_threads=1))

    with pytest.raises(UsageError, match="no sliding-window layers"):
        runtime.backend(EngineKnobs(sliding_window=NARROW, max_total_tokens=64))


def test_a_window_below_none_is_refused(tmp_path: Path) -> None:
    """Off is 0."""
    runtime = load_embedded(ModelChoice(target=str(make_folder(tmp_path, NARROW)), num_threads=1))

    with pytest.raises(UsageError, match="--sliding-window -1; expected at least 0"):
        runtime.backend(EngineKnobs(sliding_window=-1, max_total_tokens=64))
