"""Tokens of an earlier run that are fed as the target's choices (forced replay)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError, UsageError
from eaglebench.plan.jsonl import read_jsonl


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """What one turn was asked and answered; `prompt_token_ids` None when it wasn't stored."""

    prompt_token_ids: tuple[int, ...] | None
    output_token_ids: tuple[int, ...]


Replay = Mapping[tuple[str, int], StoredTurn]
"""By question id and turn, counted from 0."""


def read_replay_file(path: Path) -> dict[tuple[str, int], StoredTurn]:
    """Read `question_id, turn, output_token_ids` (and `prompt_token_ids`), one JSON a line.

    Raises:
        InputFileError: the file can't be read, a line is broken, or a turn appears twice.
    """
    stored: dict[tuple[str, int], StoredTurn] = {}
    for line, record in read_jsonl(path):
        question_id, turn = record.get("question_id"), record.get("turn")
        if type(question_id) not in {int, str} or type(turn) is not int or turn < 0:
            raise InputFileError(
                path, "expected a question_id and a turn, counted from 0", line=line
            )
        key = (str(question_id), turn)
        if key in stored:
            raise InputFileError(path, f"question {key[0]} turn {turn} appears twice", line=line)
        stored[key] = StoredTurn(
            prompt_token_ids=_ids(record, "prompt_token_ids", path, line, is_needed=False),
            output_token_ids=_ids(record, "output_token_ids", path, line, is_needed=True) or (),
        )
    if not stored:
        raise InputFileError(path, "holds no turns to replay")
    return stored


def check_replay(replay: Replay, vocab_size: int) -> None:
    """Refuse tokens that the model does not have.

    Raises:
        UsageError: names the first question and its id.
    """
    for (question_id, turn), stored in replay.items():
        ids = (*(stored.prompt_token_ids or ()), *stored.output_token_ids)
        if max(ids, default=0) >= vocab_size:
            raise UsageError(
                f"--replay: question {question_id} turn {turn} holds token {max(ids)}; the model "
                f"has {vocab_size} tokens",
                hint="replay tokens of the same model",
            )


def _ids(
    record: Mapping[str, Any], name: str, path: Path, line: int, *, is_needed: bool
) -> tuple[int, ...] | None:
    value = record.get(name)
    if value is None and not is_needed:
        return None
    if not isinstance(value, list) or not all(
        type(token_id) is int and token_id >= 0 for token_id in value
    ):
        shown = json.dumps(value)[:40]
        raise InputFileError(path, f"{name} is {shown}; expected a list of token ids", line=line)
    return tuple(value)
