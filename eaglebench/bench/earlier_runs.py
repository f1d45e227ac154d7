"""Stored runs as `run` needs them: to go on with one, and to replay one."""

from pathlib import Path

from eaglebench.errors import InputFileError, NothingMeasuredError, UsageError
from eaglebench.files import is_file, user_path
from eaglebench.plan.replay import StoredTurn, read_replay_file
from eaglebench.plan.run_config import RunConfig, make_run_config
from eaglebench.records.flags import flag_of, in_folder
from eaglebench.store.run_folder import RunFolder, find_run


def stored_config(output_dir: str, name: str) -> RunConfig:
    """The configuration of a stored run.

    Raises:
        UsageError: there is no such run, or it was written with options of another version.
    """
    folder = find_run(Path(output_dir), name)
    config = folder.manifest().get("config")
    if not isinstance(config, dict):
        raise InputFileError(folder.path / "run.json", "holds no configuration")
    return make_run_config(config)


def folder_to_resume(output_dir: str, name: str, config: RunConfig) -> RunFolder:
    """The run to go on with.

    Raises:
        UsageError: there is no such run, or it was made with other options; names them.
    """
    folder = find_run(Path(output_dir), name)
    stored = stored_config(output_dir, name).model_dump(mode="json")
    wanted = config.model_dump(mode="json")
    differing = [flag_of(key) for key in wanted if wanted[key] != stored.get(key)]
    if differing:
        raise UsageError(
            f"run {folder.run_id} was made with other options: {', '.join(differing)}",
            hint=f"eaglebench run --resume {folder.run_id}{in_folder(output_dir)}, without other options",
        )
    return folder


def read_replay(output_dir: str, name: str) -> dict[tuple[str, int], StoredTurn]:
    """Tokens to replay: of a file, or of the first arm of a stored run.

    Raises:
        UsageError: there is no such file or run.
        NothingMeasuredError: the run holds no answers.
    """
    path = user_path(name)
    if is_file(path):
        return read_replay_file(path)
    folder = find_run(Path(output_dir), name)
    stored: dict[tuple[str, int], StoredTurn] = {}
    for record in folder.turns():
        stored.setdefault(
            (record.question_id, record.turn),
            StoredTurn(
                prompt_token_ids=tuple(record.prompt_token_ids),
                output_token_ids=tuple(record.output_token_ids),
            ),
        )
    if not stored:
        raise NothingMeasuredError(f"run {folder.run_id} holds no answers to replay")
    return stored
