"""Load the models, run the session, keep the results: the part of `run` that takes time."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from typing import Any

import eaglebench
from eaglebench.assets.resolve import default_draft, resolve_model
from eaglebench.backends.registry import open_profiler, open_runtime
from eaglebench.backends.seam import Runtime
from eaglebench.bench.documents import load_run, rows_of, tau_of
from eaglebench.bench.earlier_runs import folder_to_resume, read_replay
from eaglebench.bench.environment import code_sha256, fingerprint, git_state
from eaglebench.bench.logged_progress import LoggedProgress
from eaglebench.bench.prepare import RunSetup, conversations_of
from eaglebench.bench.resume import obstacles
from eaglebench.bench.session import Session, SessionWork
from eaglebench.clock import MonotonicClock
from eaglebench.errors import UsageError
from eaglebench.files import check_writable
from eaglebench.plan.option import Notice
from eaglebench.plan.replay import Replay, check_replay
from eaglebench.plan.run_config import RunConfig
from eaglebench.progress import Progress
from eaglebench.records.flags import in_folder
from eaglebench.records.knobs import AGAIN, BASELINE_ARM, base_arm
from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.models import ModelChoice
from eaglebench.records.snapshot import AL_DEFINITION
from eaglebench.report.json_document import comparison_document
from eaglebench.report.run_key import run_key
from eaglebench.stats.tau import thresholds
from eaglebench.stats.throughput import estimate_ratio, pass_log_ratios
from eaglebench.stats.trust import doubts_of
from eaglebench.store.finalize import write_cells_csv, write_comparison, write_tables
from eaglebench.store.run_folder import RunFolder, Status
from eaglebench.store.run_lock import writing

TRACE = "trace.json"
"""What `--profile` writes into the folder of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """Who is told what goes on."""

    progress: AbstractContextManager[Progress]
    notice: Notice


def measure(
    setup: RunSetup,
    output_dir: str,
    *,
    progress: AbstractContextManager[Progress],
    notice: Notice,
) -> RunFolder:
    """Run what was set up and keep its results; returns where they are.

    Raises:
        UsageError: the models can't be had or don't fit, or a prompt can't run.
        StorageError: the results can't be written.
        KeyboardInterrupt: after saying where the finished questions are.
    """
    told = _Told(progress=progress, notice=notice)
    config = setup.config
    check_writable(Path(output_dir), hint="choose another --output-dir")
    replay = read_replay(output_dir, config.replay) if config.replay else None
    resumed = folder_to_resume(output_dir, setup.resume, config) if setup.resume else None
    if resumed and resumed.manifest()["status"] == "done":
        notice(f"run {resumed.run_id} is complete; nothing is left to run")
        return resumed
    with writing(resumed.path) if resumed else nullcontext():
        return _measured(setup, output_dir, resumed, replay, told)


def _measured(
    setup: RunSetup,
    output_dir: str,
    resumed: RunFolder | None,
    replay: Replay | None,
    told: _Told,
) -> RunFolder:
    """Load the models and run the session, in the folder of a run or in a new one."""
    config = setup.config
    needs_draft = any(cell.knobs.num_steps for cell in setup.expansion.cells)
    choice = model_choice(config, needs_draft=needs_draft, notice=told.notice)
    told.notice(f"loading {config.model}")
    runtime = open_runtime(choice)
    setup = _follow_head(setup, runtime.info.algorithm)
    config = setup.config
    try:
        check_replay(replay or {}, runtime.info.vocab_size)
        if resumed:
            _check_same(setup, runtime, resumed)
            _run(setup, told, runtime, resumed, replay)
            return resumed
        folder = RunFolder.create(
            Path(output_dir),
            config.experiment_name or config.suite,
            config.model_dump(mode="json"),
            datetime.now(UTC),
        )
        with writing(folder.path):
            folder.write_environment(fingerprint(runtime.info, config.num_threads))
            folder.write_manifest(_description(setup, runtime))
            _run(setup, told, runtime, folder, replay)
        return folder
    finally:
        runtime.close()


def _check_same(setup: RunSetup, runtime: Runtime, folder: RunFolder) -> None:
    """Go on only with the same code, models, questions and environment.

    Raises:
        UsageError: something that decides a count is another one; named.
    """
    here = fingerprint(runtime.info, setup.config.num_threads)
    differing = obstacles(
        folder.manifest(), folder.environment(), _description(setup, runtime), here
    )
    if differing:
        raise UsageError(
            f"run {folder.run_id} can't be gone on with: {'; '.join(differing)}",
            hint="go on where it was begun, or start it anew; what is on disk can be shown",
        )


def _follow_head(setup: RunSetup, algorithm: str | None) -> RunSetup:
    """The setup with the algorithm of the head that was loaded, for the record.

    Where the algorithm was given, another head has been refused.
    """
    if algorithm is None:
        return setup
    return replace(setup, config=setup.config.model_copy(update={"algorithm": algorithm}))


def _run(
    setup: RunSetup, told: _Told, runtime: Runtime, folder: RunFolder, replay: Replay | None
) -> None:
    """Run the session in its folder; whatever happens, the folder says how far it came."""
    folder.prepare_resume()
    profiler = open_profiler(folder.path / TRACE) if setup.config.profile else nullcontext()
    with told.progress as progress:
        session = Session(
            SessionWork(
                config=setup.config,
                cells=setup.expansion.cells,
                conversations_of=lambda cell: conversations_of(setup, cell, runtime.tokenizer),
                replay=replay,
                is_precise=lambda folder, cell_id: is_precise(
                    folder.blocks(), cell_id, setup.config.arms, setup.config.precision
                ),
            ),
            runtime,
            folder,
            progress=LoggedProgress(progress, folder.path / "log.txt"),
            clock=MonotonicClock(),
        )
        status: Status = "failed"
        try:
            kept = folder.manifest().get("tau")  # a resumed run keeps its own
            tau = kept or thresholds(session.noise())
            folder.set_status("running", tau=tau)
            with profiler:
                session.run()
            status = "done"
        except KeyboardInterrupt:
            status = "partial"
            session.progress.note("interrupted")
            told.notice(f"interrupted; finished questions are in {folder.path}")
            told.notice(
                f"go on with: eaglebench run --resume {folder.run_id}{in_folder(folder.root)}"
            )
            raise
        finally:
            folder.set_status(status, ended=_now())
    write_tables(folder)
    run = load_run(folder)
    folder.set_status(status, doubts=[doubt.sentence for doubt in doubts_of(run)])
    rows = rows_of(run)
    write_cells_csv(folder, [{**run_key(run), **row.as_dict()} for row in rows])
    write_comparison(folder, comparison_document(rows, tau_of(run)))


def is_precise(
    blocks: Sequence[MeasuredBlock], cell_id: str, arms: Sequence[str], precision: float
) -> bool:
    """Whether two such runs could be held against each other; looks at widths alone.

    Both of them scatter, so each has to be narrower than `precision` by the root of two.
    """
    for arm in arms:
        if arm == BASELINE_ARM:
            continue
        estimate = estimate_ratio(pass_log_ratios(blocks, cell_id, arm, _other(arm)))
        if estimate is None:
            continue
        if estimate.half_width is None or estimate.half_width * sqrt(2) > precision:
            return False
    return True


def _other(arm: str) -> str:
    """The arm whose throughput this one is measured by."""
    return base_arm(arm) if arm.endswith(AGAIN) else BASELINE_ARM


def _description(setup: RunSetup, runtime: Runtime) -> dict[str, Any]:
    """The manifest of a run that begins now; written before anything is measured."""
    config, suite = setup.config, setup.suite
    package = Path(eaglebench.__file__).parent
    return {
        "status": "running",
        "argv": sys.argv[1:],
        "config": config.model_dump(mode="json"),
        "cells": [cell.cell_id for cell in setup.expansion.cells],
        "skipped": [asdict(cell) for cell in setup.expansion.skipped],
        "suite": {
            "name": suite.name,
            "version": suite.version,
            "sha256": suite.sha256,
            "questions_sha256": setup.questions.sha256 if setup.questions else None,
            "n": len(conversations_of(setup, setup.expansion.cells[0], runtime.tokenizer)),
        },
        "models": asdict(runtime.info),
        "git": git_state(package),
        "code_sha256": code_sha256(package),
        "al_definition": AL_DEFINITION,
        "started": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def model_choice(config: RunConfig, *, needs_draft: bool, notice: Notice) -> ModelChoice:
    """The models as local folders, fetched if need be.

    Raises:
        UsageError: a model can't be had, or no head is known for the target.
    """
    draft_name = config.draft_model or default_draft(config.model)
    if not needs_draft:
        if config.draft_config:
            raise UsageError(
                "--draft-config is given, and no cell drafts, so that no head would read it",
                hint="leave it out, or give --num-steps above 0",
            )
        draft_name = None
    elif draft_name is None:
        raise UsageError(
            f"no EAGLE head is known for {config.model}",
            hint="name one with --draft-model, or decode plainly with --algorithm NONE",
        )
    target = resolve_model(config.model, notice=notice)
    draft = resolve_model(draft_name, notice=notice) if draft_name else None
    return ModelChoice(
        target=str(target),
        draft=str(draft) if draft else None,
        target_name=config.model,
        draft_name=draft_name,
        algorithm=config.algorithm if "algorithm" in config.model_fields_set else None,
        aux_layer_ids=config.aux_layer_ids,
        draft_config=config.draft_config,
        dtype=config.dtype,
        device=config.device,
        attention_backend=config.attention_backend,
        trust_remote_code=config.trust_remote_code,
        num_threads=config.num_threads,
        backend=config.backend,
        engine_python=config.engine_python,
        engine_args=config.engine_args,
    )
