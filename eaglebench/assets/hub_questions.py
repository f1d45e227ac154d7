"""Questions from a data set of the Hub, through `datasets`, kept as JSON Lines in the cache."""

import json
from hashlib import sha256
from pathlib import Path

from eaglebench.assets.cache import cache_root
from eaglebench.assets.progress import Notice
from eaglebench.errors import AssetError
from eaglebench.files import is_folder, make_folder, user_path, write_text
from eaglebench.foreign import foreign_code

PREFIX = "hf:"
DEFAULT_SPLIT = "train"
_PATIENCE_S = 10


def is_hub_name(name: str) -> bool:
    """Whether a question file's name means a data set of the Hub."""
    return name.startswith(PREFIX)


def fetch_questions(name: str, *, notice: Notice) -> Path:
    """`hf:OWNER/NAME` or `hf:OWNER/NAME@SPLIT` as a file of JSON Lines, one line a row.

    Raises:
        AssetError: the data set or the split can't be had.
    """
    dataset_name, _, split = name.removeprefix(PREFIX).partition("@")
    split = split or DEFAULT_SPLIT
    path = cache_root() / "questions" / f"{sha256(name.encode()).hexdigest()[:16]}.jsonl"
    if path.is_file():
        return path
    _check_hub(dataset_name)
    notice(f"looking up the data set {dataset_name}, split {split}")
    rows = _rows(dataset_name, split)
    lines = [json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows]
    make_folder(path.parent)
    write_text(path, "".join(lines))
    return path


def _check_hub(dataset_name: str) -> None:
    """Find out in one request whether the Hub answers; `datasets` tries again and again.

    Raises:
        AssetError: it does not.
    """
    from huggingface_hub import constants, get_session  # noqa: PLC0415  # slow, and seldom needed

    if constants.HF_HUB_OFFLINE or is_folder(user_path(dataset_name)):
        return
    with foreign_code(_unreachable):
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE_S)


def _unreachable(reason: str) -> AssetError:
    return AssetError(
        f"the Hub can't be reached: {reason}",
        hint="give a file to --question-file, or set HF_HUB_OFFLINE=1 to take what was fetched before",
    )


def _rows(dataset_name: str, split: str) -> list[dict[str, object]]:
    from datasets import load_dataset  # noqa: PLC0415  # slow, and seldom needed
    from datasets.exceptions import DatasetNotFoundError  # noqa: PLC0415

    try:
        return list(load_dataset(dataset_name, split=split))
    except (OSError, ValueError, DatasetNotFoundError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise AssetError(
            f"the data set {dataset_name}, split {split}, can't be had: {reason}",
            hint=f"write {PREFIX}OWNER/NAME@SPLIT, or give a file of JSON Lines",
        ) from error
