"""Baselines: snapshots as small text files that live in git.

results/baselines/<name>.jsonl, at most 100 kB; a change of one cell is a change of one line.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from eaglebench.errors import InputFileError, NothingMeasuredError, UsageError
from eaglebench.files import is_file, make_folder, parse_json, read_text, user_path, write_text
from eaglebench.records.doubt import Doubt
from eaglebench.records.flags import in_folder
from eaglebench.records.snapshot import (
    AL_DEFINITION,
    ArmCounts,
    ArmNoise,
    QuestionCounts,
    Snapshot,
)
from eaglebench.store import schema1
from eaglebench.store.baseline_lines import (
    BASELINE_SCHEMA,
    LINE,
    CellLine,
    HeaderLine,
    NoiseLine,
)
from eaglebench.store.run_folder import slug

SUFFIX = ".jsonl"
MOST_BYTES = 100_000


def baselines_folder(root: Path) -> Path:
    """Where baselines lie below a results folder."""
    return root / "baselines"


def list_baselines(root: Path) -> list[str]:
    """Names of all baselines, sorted."""
    return sorted(path.stem for path in baselines_folder(root).glob(f"*{SUFFIX}"))


def find_baseline(root: Path, name: str) -> Path:
    """The file of a baseline, by name or by path.

    Raises:
        NothingMeasuredError: there is none; the nearest names are offered.
    """
    if name.endswith(SUFFIX) and is_file(user_path(name)):
        return user_path(name)
    named = baselines_folder(root) / f"{slug(name)}{SUFFIX}"
    if is_file(named):
        return named
    known = list_baselines(root)
    near = get_close_matches(name, known, n=3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"there are: {', '.join(known)}"
    else:
        hint = (
            f"make one of a good run: eaglebench baseline save NAME --reason WHY{in_folder(root)}"
        )
    raise NothingMeasuredError(f"no baseline {name!r} in {baselines_folder(root)}", hint=hint)


def write_baseline(root: Path, name: str, snapshot: Snapshot, reason: str) -> Path:
    """Write a snapshot as a baseline; an old one of the name is replaced in one step.

    Raises:
        UsageError: it is larger than a baseline may be.
        StorageError: the disk refuses; the old one is intact.
    """
    text = "".join(line + "\n" for line in _lines(snapshot, reason))
    if len(text.encode()) > MOST_BYTES:
        raise UsageError(
            f"the baseline would have {len(text.encode())} bytes, more than {MOST_BYTES}",
            hint="fewer cells or questions; a baseline is meant for git",
        )
    folder = baselines_folder(root)
    make_folder(folder)
    path = folder / f"{slug(name)}{SUFFIX}"
    write_text(path, text)
    return path


def read_baseline(path: Path) -> Snapshot:
    """A baseline as a snapshot.

    Raises:
        InputFileError: it is no baseline, of another schema, or was changed by hand; with its line.
    """
    lines = [(number, _parse(path, number, text)) for number, text in _numbered(path)]
    if not lines:
        raise InputFileError(path, "is empty; expected a header line")
    first, header = lines[0]
    if not isinstance(header, HeaderLine):
        raise InputFileError(path, "the first line must be the header", line=first)
    arms: dict[tuple[str, str], ArmCounts] = {}
    noise: dict[tuple[str, str], ArmNoise] = {}
    for number, line in lines[1:]:
        if isinstance(line, HeaderLine):
            raise InputFileError(path, "a second header", line=number)
        known = noise if isinstance(line, NoiseLine) else arms
        key = (line.cell_id, line.arm)
        if key in known:
            raise InputFileError(path, f"{' '.join(key)} is there twice", line=number)
        if isinstance(line, CellLine):
            arms[key] = _arm(path, number, line, header.questions)
        elif key in arms:
            noise[key] = _noise(line)
        else:
            raise InputFileError(path, f"{' '.join(key)} has noise and no counts", line=number)
    if not arms:
        raise InputFileError(path, "holds no counts, only a header", line=first)
    return _snapshot(path.stem, header, [replace(arms[key], noise=noise.get(key)) for key in arms])


def _numbered(path: Path) -> Iterable[tuple[int, str]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def _parse(path: Path, number: int, text: str) -> HeaderLine | CellLine | NoiseLine:
    hint = "it was changed by hand, or is no baseline; eaglebench baseline save makes one"
    raw = parse_json(path, text, line=number, hint=hint, has_constants=False)
    if isinstance(raw, dict) and raw.get("kind") == "header":
        version = raw.get("schema_version")
        if version not in (schema1.SCHEMA, BASELINE_SCHEMA) or isinstance(version, bool):
            raise InputFileError(
                path,
                f"schema version {version!r}; this version of eaglebench reads {schema1.SCHEMA} "
                f"and {BASELINE_SCHEMA}",
                line=number,
                hint="it was written by another version of eaglebench",
            )
    try:
        return LINE.validate_python(schema1.baseline_line(raw))
    except ValidationError as error:
        finding = error.errors()[0]
        where = ".".join(str(part) for part in finding["loc"])
        raise InputFileError(path, f"{where}: {finding['msg']}", line=number, hint=hint) from error


def _snapshot(name: str, header: HeaderLine, arms: Iterable[ArmCounts]) -> Snapshot:
    return Snapshot(
        name=name,
        suite=header.suite,
        suite_version=header.suite_version,
        suite_sha256=header.suite_sha256,
        workload=header.workload,
        exact=header.exact,
        timing=header.timing,
        created_from=header.created_from,
        reason=header.reason,
        is_complete=True,
        questions_sha256=header.questions_sha256,
        arms=tuple(arms),
    )


def _noise(line: NoiseLine) -> ArmNoise:
    return ArmNoise(**{name: getattr(line, name) for name in ArmNoise.__dataclass_fields__})


def _arm(path: Path, number: int, cell: CellLine, questions: list[str]) -> ArmCounts:
    names = questions if cell.questions is None else cell.questions
    if len(names) != len(cell.steps_by_q):
        raise InputFileError(
            path,
            f"{cell.cell_id} {cell.arm} has {len(cell.steps_by_q)} questions, {len(names)} are named",
            line=number,
        )
    if len(set(names)) < len(names):
        raise InputFileError(
            path, f"{cell.cell_id} {cell.arm}: a question is named twice", line=number
        )
    unknown: list[str | None] = [None] * len(names)
    columns = zip(
        names,
        cell.emitted_by_q,
        cell.steps_by_q,
        cell.out_sha_by_q,
        cell.accept_sha_by_q,
        cell.prompts_sha_by_q or unknown,
        cell.drafts_sha_by_q or unknown,
        strict=True,
    )
    return ArmCounts(
        cell_id=cell.cell_id,
        arm=cell.arm,
        counters=cell.counters,
        num_drafts=cell.num_drafts,
        accepted_at=tuple(cell.accepted_at),
        failed=cell.failed,
        questions=tuple(
            QuestionCounts(
                question_id=name,
                emitted=emitted,
                verify_steps=steps,
                output_sha=output_sha,
                accept_sha=accept_sha,
                prompts_sha=prompts_sha,
                drafts_sha=drafts_sha,
            )
            for name, emitted, steps, output_sha, accept_sha, prompts_sha, drafts_sha in columns
        ),
        doubts=tuple(
            Doubt(kind=kind, cell_id=cell.cell_id, arm=cell.arm, text=kind)
            for kind in cell.untrusted or ()
        ),
    )


def _lines(snapshot: Snapshot, reason: str) -> Iterable[str]:
    arms = sorted(snapshot.arms, key=lambda arm: arm.key)
    questions = [question.question_id for question in arms[0].questions] if arms else []
    header = HeaderLine(
        schema_version=BASELINE_SCHEMA,
        suite=snapshot.suite,
        suite_version=snapshot.suite_version,
        suite_sha256=snapshot.suite_sha256,
        workload=dict(snapshot.workload),
        exact=dict(snapshot.exact),
        timing=dict(snapshot.timing),
        al_definition=AL_DEFINITION,
        created_from=snapshot.created_from,
        reason=reason,
        questions=questions,
        questions_sha256=snapshot.questions_sha256,
    )
    yield _text(header)
    for arm in arms:
        yield _text(_cell(arm, questions))
    for arm in arms:
        if arm.noise is not None:
            noise = {name: getattr(arm.noise, name) for name in ArmNoise.__dataclass_fields__}
            yield _text(NoiseLine(cell_id=arm.cell_id, arm=arm.arm, **noise))


def _cell(arm: ArmCounts, questions: list[str]) -> CellLine:
    mine = [question.question_id for question in arm.questions]
    return CellLine(
        cell_id=arm.cell_id,
        arm=arm.arm,
        counters=dict(arm.counters),
        num_drafts=arm.num_drafts,
        accepted_at=list(arm.accepted_at),
        failed=arm.failed,
        questions=None if mine == questions else mine,
        emitted_by_q=[question.emitted for question in arm.questions],
        steps_by_q=[question.verify_steps for question in arm.questions],
        out_sha_by_q=[question.output_sha for question in arm.questions],
        accept_sha_by_q=[question.accept_sha for question in arm.questions],
        prompts_sha_by_q=_all_known([question.prompts_sha for question in arm.questions]),
        drafts_sha_by_q=_all_known([question.drafts_sha for question in arm.questions]),
        untrusted=sorted({doubt.kind for doubt in arm.doubts if doubt.is_fatal}) or None,
    )


def _all_known(digests: Sequence[str | None]) -> list[str] | None:
    """Digests by question, if all are known."""
    known = [digest for digest in digests if digest is not None]
    return known if len(known) == len(digests) else None


def _text(line: HeaderLine | CellLine | NoiseLine) -> str:
    document = {name: value for name, value in line.model_dump().items() if value is not None}
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
