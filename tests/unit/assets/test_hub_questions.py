"""Question sets through `datasets`; a local folder stands in for the Hub."""

import json
from pathlib import Path

import huggingface_hub
import pytest

from eaglebench.assets.hub_questions import fetch_questions, is_hub_name
from eaglebench.errors import AssetError
from eaglebench.plan.questions import read_question_file


@pytest.fixture
def data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that `datasets` reads as a data set with one split."""
    monkeypatch.setenv("EAGLEBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "questions"
    folder.mkdir()
    rows = [{"prompt_id": n, "category": "facts", "prompt": ["Who?", f"And {n}?"]} for n in (7, 8)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "test.jsonl").write_text(text)
    return folder


def test_rows_become_questions(data_set: Path) -> None:
    """Every row is a question once the fields are mapped."""
    path = fetch_questions(f"hf:{data_set}@test", notice=lambda _line: None)

    read = read_question_file(path, {"question_id": "prompt_id", "turns": "prompt"})

    assert [q.question_id for q in read.questions] == ["7", "8"]
    assert read.questions[1].turns == ("Who?", "And 8?")


def test_a_missing_split_is_named(data_set: Path) -> None:
    """The message names the data set and the split."""
    with pytest.raises(AssetError, match="split nowhere"):
        fetch_questions(f"hf:{data_set}@nowhere", notice=lambda _line: None)


def test_only_the_prefix_means_the_hub() -> None:
    """A path is never looked up on the Hub."""
    assert is_hub_name("hf:owner/name")
    assert not is_hub_name("owner/name.jsonl")


def test_a_hub_that_can_not_be_reached_is_told_after_one_request(
    data_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`datasets` would try again for half a minute; a local folder is no matter of the Hub."""
    asked = []

    class Offline:
        def head(self, url: str, timeout: float) -> None:
            asked.append((url, timeout))
            raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "get_session", Offline)

    with pytest.raises(AssetError, match="the Hub can't be reached: ConnectionError") as caught:
        fetch_questions("hf:owner/name", notice=lambda _line: None)

    assert len(asked) == 1
    assert "HF_HUB_OFFLINE=1" in str(caught.value.hint)
    assert fetch_questions(f"hf:{data_set}@test", notice=lambda _line: None).is_file()
    assert len(asked) == 1
