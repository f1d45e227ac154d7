"""Models loaded by folder into a runtime, and a trace of what they do."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from eaglebench.backends.loading import load_embedded
from eaglebench.backends.profiling import profile_to
from eaglebench.errors import UsageError
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import ModelChoice
from tests.engines import TINY, TINY_HEAD


def make_choice(**changes: object) -> ModelChoice:
    """The tiny pair."""
    values: dict[str, object] = {"target": str(TINY), "draft": str(TINY_HEAD), "num_threads": 1}
    return ModelChoice(**(values | changes))  # type: ignore[arg-type]


def test_what_was_loaded_is_described() -> None:
    """For the record, and for checks before a run."""
    info = load_embedded(make_choice(dtype="float64", target_name="tiny")).info

    assert (info.target_id, info.dtype, info.device) == ("tiny", "float64", "cpu")
    assert (info.vocab_size, info.draft_vocab_size) == (260, 96)
    assert len(info.target_sha256) == len(info.tokenizer_sha256) == 64
    # K and V of 4 layers of the target and 1 of the head: 2 KV heads of 24, 8 bytes each
    assert info.kv_bytes_per_slot == 2 * 5 * 2 * 24 * 8


def test_a_target_alone_decodes_plainly() -> None:
    """No head, no drafts."""
    runtime = load_embedded(make_choice(draft=None))
    backend = runtime.backend(EngineKnobs(num_steps=0, num_draft_tokens=1, max_total_tokens=64))
    request = GenerationRequest(request_id="a", prompt_token_ids=(256, 258, 104), max_new_tokens=3)

    (observation,) = backend.generate([request])

    assert len(observation.output_token_ids) == 3
    assert observation.counters.drafted == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "cuda"}, "no CUDA device"),
        ({"device": "toaster"}, "unknown device"),
        ({"dtype": "int8"}, "unknown dtype"),
        ({"attention_backend": "magic"}, "unknown attention backend"),
    ],
)
def test_what_is_not_there_is_refused(changes: dict[str, object], message: str) -> None:
    """With what could be asked for."""
    if changes.get("device") == "cuda":
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("this machine has a CUDA device")

    with pytest.raises(UsageError, match=message):
        load_embedded(make_choice(**changes))


def test_a_trace_is_written_even_after_an_error(tmp_path: Path) -> None:
    """A Chrome trace that holds the matrix products."""
    runtime = load_embedded(make_choice())
    backend = runtime.backend(EngineKnobs(max_total_tokens=64))
    request = GenerationRequest(request_id="a", prompt_token_ids=(256, 258, 104), max_new_tokens=3)

    with suppress(KeyError), profile_to(tmp_path / "trace.json"):
        list(backend.generate([request]))
        raise KeyError

    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any("aten::mm" in str(event.get("name")) for event in events)


def test_a_tokenizer_with_more_ids_than_the_target_is_told(tmp_path: Path) -> None:
    """A prompt with one of them is refused; the others run."""
    folder = tmp_path / "target"
    shutil.copytree(TINY, folder)
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    extra = dict(document["added_tokens"][-1], id=260, content="<extra>")
    document["added_tokens"].append(extra)
    path.write_text(json.dumps(document))

    runtime = load_embedded(make_choice(target=str(folder), draft=None))

    assert runtime.info.warnings == (
        "the tokenizer has 261 ids, the target 260; a prompt with one of the others is refused",
    )
    assert runtime.tokenizer.encode("<extra>") == [260]


def test_the_threads_in_use_are_described() -> None:
    """Whoever chose them; a CPU is no accelerator."""
    info = load_embedded(make_choice(num_threads=1)).info

    assert (info.num_threads, info.accelerator) == (1, None)
