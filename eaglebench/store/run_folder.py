"""One run on disk.

results/runs/<id>/
  run.json          manifest: status, argv, config, suite, models, git, tau, times
  environment.json  fingerprint
  requests.jsonl    appended live       requests.parquet   written at the end
  steps.jsonl       appended live       steps.parquet      takes its place at the end
  blocks.jsonl      appended live       prompts.jsonl      every distinct prompt, at the end
  comparison.json   arm against arm     cells.csv          for people
  log.txt           what happened when
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from eaglebench.errors import InputFileError, StorageError, UsageError
from eaglebench.files import is_file, is_folder, read_json_object, why
from eaglebench.records.flags import in_folder
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn, TurnKey
from eaglebench.records.observation import VerifyStep
from eaglebench.store import schema1
from eaglebench.store.lines import (
    Upgrade,
    append_lines,
    drop_broken_tail,
    read_lines,
    unknown_fields,
    write_json,
)
from eaglebench.store.manifest import Environment, Manifest
from eaglebench.store.records import SCHEMA_VERSION, StepLine, lines_of, with_gaps
from eaglebench.store.run_lock import is_written
from eaglebench.store.step_table import read_step_table

Status = Literal["running", "done", "failed", "partial"]
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_LENGTH = 60
_TIME_LENGTH = len("20261130T021300Z")
_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")


def slug(name: str) -> str:
    """A name that is safe in a path on every system; the original is kept in the manifest."""
    safe = _UNSAFE.sub("-", name).strip("-.")[:_SLUG_LENGTH].strip("-.")
    return safe or "run"


class RunFolder:
    """A run folder, open for reading and appending."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def root(self) -> Path:
        """The folder that it was put in among others: what `--output-dir` says."""
        return self.path.parent.parent

    # --- writing ------------------------------------------------------------------------------

    @classmethod
    def create(cls, root: Path, name: str, config: dict[str, Any], now: datetime) -> "RunFolder":
        """A new folder: time, suite and six digits of the configuration's digest.

        Raises:
            StorageError: it can't be made.
        """
        digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:6]
        stem = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{slug(name)}-{digest}"
        for attempt in range(1, 100):
            path = root / "runs" / (stem if attempt == 1 else f"{stem}-{attempt}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise StorageError(
                    f"{path} can't be made: {error.strerror or error}",
                    hint="choose another --output-dir",
                ) from error
            return cls(path)
        raise StorageError(f"{root / 'runs' / stem}: too many runs in one second")

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write `run.json`."""
        write_json(
            self.path / "run.json",
            {"schema_version": SCHEMA_VERSION, "run_id": self.run_id, **manifest},
        )

    def set_status(self, status: Status, **changes: Any) -> None:
        """Change the status, and whatever else is known now."""
        manifest = self.manifest()
        manifest.update(changes, status=status)
        self.write_manifest(manifest)

    def write_environment(self, environment: dict[str, Any]) -> None:
        """Write `environment.json`."""
        write_json(self.path / "environment.json", environment)

    def append(self, turns: Sequence[MeasuredTurn], block: MeasuredBlock) -> None:
        """Append one finished block; steps go first, so that a turn on disk has its steps."""
        steps = [line for turn in turns for line in lines_of(turn)]
        append_lines(self.path / "steps.jsonl", StepLine, steps)
        append_lines(self.path / "requests.jsonl", MeasuredTurn, turns, but="steps")
        append_lines(self.path / "blocks.jsonl", MeasuredBlock, [block])

    def prepare_resume(self) -> None:
        """Cut broken tails, so that appending goes on with whole lines."""
        for name in ("steps.jsonl", "requests.jsonl", "blocks.jsonl"):
            drop_broken_tail(self.path / name)

    # --- reading ------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """`run.json`; a run that nobody writes any more is `interrupted`, whatever it says.

        Raises:
            InputFileError: missing, broken, or of a schema this version does not know.
        """
        path = self.path / "run.json"
        manifest = read_json_object(path)
        version = manifest.get("schema_version")
        if version not in (schema1.SCHEMA, SCHEMA_VERSION) or isinstance(version, bool):
            raise InputFileError(
                path,
                f"schema version {version!r}; this version of eaglebench reads {schema1.SCHEMA} and {SCHEMA_VERSION}",
                hint="it was written by another version of eaglebench, or is no run",
            )
        _check(path, manifest, Manifest)
        if manifest["status"] == "running" and not is_written(self.path):
            return {**manifest, "status": "interrupted"}
        return manifest

    def environment(self) -> dict[str, Any]:
        """`environment.json`; empty where it is missing.

        Raises:
            InputFileError: it is no JSON object, or was changed by hand.
        """
        path = self.path / "environment.json"
        if not path.exists():
            return {}
        environment = read_json_object(path)
        _check(path, environment, Environment)
        return environment

    def turns(self) -> list[MeasuredTurn]:
        """All finished turns without their steps; a later line for the same turn replaces an earlier one."""
        records = self._lines("requests.jsonl")[0]
        return list({record.key: record for record in records}.values())

    def has_answers(self) -> bool:
        """Whether a question was answered without a failure."""
        try:
            with (self.path / "requests.jsonl").open("rb") as lines:
                return any(json.loads(line).get("error") is None for line in lines if line.strip())
        except (OSError, ValueError, AttributeError):
            return False

    def blocks(self) -> list[MeasuredBlock]:
        """All finished blocks; a later line for the same block replaces an earlier one."""
        records = self._lines("blocks.jsonl")[0]
        return list({(r.cell_id, r.arm, r.pass_index, r.block): r for r in records}.values())

    def notices(self) -> list[str]:
        """What was dropped because a line was cut off, and fields that only newer versions know."""
        found = [self._lines(name)[1] for name in ("requests.jsonl", "steps.jsonl", "blocks.jsonl")]
        notices = [notice for notice in found if notice is not None]
        if (parquet := self.path / "steps.parquet").exists():
            unknown = read_step_table(parquet)[1]
            notices += [unknown_fields(parquet, unknown)] if unknown else []
        return notices

    def steps(self) -> dict[TurnKey, list[VerifyStep]]:
        """Verify steps by turn: those of the table, then those appended after it was written."""
        parquet = self.path / "steps.parquet"
        stored = read_step_table(parquet)[0] if parquet.exists() else []
        grouped: dict[TurnKey, dict[int, VerifyStep]] = {}
        for line in stored + self._lines("steps.jsonl")[0]:
            grouped.setdefault(line.key, {})[line.step] = line.alone
        return {key: [steps[i] for i in sorted(steps)] for key, steps in grouped.items()}

    def _lines(self, name: str) -> tuple[list[Any], str | None]:
        """Records of a file of lines, and what was not read of it."""
        kinds: dict[str, tuple[type, Upgrade]] = {
            "requests.jsonl": (MeasuredTurn, self._turn_of_today),
            "steps.jsonl": (StepLine, lambda values: with_gaps(schema1.renamed(values))),
            "blocks.jsonl": (MeasuredBlock, schema1.block),
        }
        return read_lines(self.path / name, *kinds[name])

    def _turn_of_today(self, values: Mapping[str, Any]) -> dict[str, Any]:
        config = {} if "knobs" in values else self.manifest()["config"]
        return schema1.turn(values, config)


def _check(path: Path, values: dict[str, Any], kind: type[BaseModel]) -> None:
    try:
        kind.model_validate(values)
    except ValidationError as error:
        finding = error.errors()[0]
        where = ".".join(str(part) for part in finding["loc"])
        raise InputFileError(
            path, f"{where}: {finding['msg']}", hint="the file was changed by hand"
        ) from error


def find_run(root: Path, name: str) -> RunFolder:
    """A run by id, path, `latest` or `latest~N`.

    Raises:
        UsageError: there is no such run.
    """
    if name and is_file(Path(name) / "run.json"):
        return RunFolder(Path(name))
    runs = list_runs(root)
    latest = _LATEST.fullmatch(name)
    if latest:
        back = int(latest.group(1) or 0)
        if back < len(runs):
            return runs[-1 - back]
        raise UsageError(
            f"{name} asks for run {back + 1} from the end; there are {len(runs)} in {root / 'runs'}",
            hint=f"eaglebench run tiny{in_folder(root)}",
        )
    for run in runs:
        if run.run_id == name:
            return run
    raise UsageError(
        f"no run {name!r} in {root / 'runs'}",
        hint=f"eaglebench list{in_folder(root)} shows the runs there are",
    )


def find_measured(root: Path, name: str) -> tuple[RunFolder, list[str]]:
    """A run by name, and ids of newer ones that were passed over.

    `latest` and `latest~N` count runs with an answered question alone: one that was refused, or failed
    before it measured anything, is nothing to look at.

    Raises:
        UsageError: there is no such run.
    """
    latest = None if is_file(Path(name) / "run.json") else _LATEST.fullmatch(name)
    if latest is None:
        return find_run(root, name), []
    passed: list[str] = []
    wanted = int(latest.group(1) or 0)
    for run in reversed(list_runs(root)):
        if not run.has_answers():
            passed.append(run.run_id)
        elif not wanted:
            return run, passed
        else:
            wanted -= 1
    if len(passed) == len(list_runs(root)):
        return find_run(root, name), []  # nothing was ever measured, and this shows why
    raise UsageError(
        f"{name}: too few of the {len(list_runs(root))} runs in {root / 'runs'} have an answer",
        hint=f"eaglebench list{in_folder(root)} shows the runs there are",
    )


def list_runs(root: Path) -> list[RunFolder]:
    """All runs, oldest first: by the time in their ids, then by the time in their manifests.

    Where that is equal as well, or a manifest can't be read, the id decides.
    """
    folder = root / "runs"
    if not is_folder(folder):
        return []
    try:
        found = [path for path in folder.iterdir() if is_file(path / "run.json")]
    except OSError as error:
        raise InputFileError(folder, f"can't be read: {why(error)}") from error
    seconds = Counter(path.name[:_TIME_LENGTH] for path in found)
    keys = {
        path: (
            path.name[:_TIME_LENGTH],
            _started(path) if seconds[path.name[:_TIME_LENGTH]] > 1 else "",
            path.name,
        )
        for path in found
    }
    return [RunFolder(path) for path in sorted(found, key=keys.__getitem__)]


def _started(path: Path) -> str:
    """When a run says it was started; looked at only to order runs of one second."""
    try:
        return str(RunFolder(path).manifest().get("started", ""))
    except InputFileError:
        return ""
