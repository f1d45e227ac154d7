"""Load the models, run the session, print the tables: the part of `run` that takes time."""

import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import eaglebench
from eaglebench.assets.resolve import default_draft, resolve_model
from eaglebench.backends.registry import open_profiler, open_runtime
from eaglebench.backends.seam import Runtime
from eaglebench.bench.environment import code_sha256, fingerprint, git_state
from eaglebench.bench.resume import obstacles
from eaglebench.bench.session import Session, SessionPlan
from eaglebench.cli.console import notice
from eaglebench.cli.exit_codes import trust_code
from eaglebench.cli.progress_display import LoggedProgress, progress_display
from eaglebench.cli.results import load_run, rows_of, tau_of
from eaglebench.cli.run_flow import Plan, RunOutput, conversations_of
from eaglebench.cli.show_command import print_run
from eaglebench.cli.stored import folder_to_resume, read_replay
from eaglebench.clock import MonotonicClock
from eaglebench.errors import UsageError
from eaglebench.files import check_writable
from eaglebench.plan.replay import Replay, check_replay
from eaglebench.plan.run_config import RunConfig
from eaglebench.records.knobs import AGAIN, BASELINE_ARM, base_arm
from eaglebench.records.models import ModelChoice
from eaglebench.records.snapshot import AL_DEFINITION
from eaglebench.report.comparison import comparison_document
from eaglebench.report.run_key import run_key
from eaglebench.stats.tau import thresholds
from eaglebench.stats.throughput import estimate_ratio, pass_log_ratios
from eaglebench.stats.trust import doubts_of
from eaglebench.store.decode import measured_blocks
from eaglebench.store.finalize import write_cells_csv, write_comparison, write_tables
from eaglebench.store.run_folder import RunFolder, Status
from eaglebench.store.run_lock import writing


def measure(plan: Plan, output: RunOutput) -> int:
    """Run a plan, keep its results, print its tables; returns the exit status.

    Raises:
        UsageError: the models can't be had or don't fit, or a prompt can't run.
        StorageError: the results can't be written.
        KeyboardInterrupt: after saying where the finished questions are.
    """
    folder = measure_quietly(plan, output)
    doubts = print_run(folder, is_json=output.is_json).doubts
    notice(f"results: {folder.path}")
    for doubt in doubts:
        if doubt.is_fatal:
            notice(f"not to be trusted: {doubt.sentence}")
    return trust_code(doubts)


def measure_quietly(plan: Plan, output: RunOutput) -> RunFolder:
    """Run a plan and keep its results; raises like `measure`."""
    config = plan.config
    check_writable(Path(output.output_dir), hint="choose another --output-dir")
    replay = read_replay(output.output_dir, config.replay) if config.replay else None
    resumed = folder_to_resume(output.output_dir, plan.resume, config) if plan.resume else None
    if resumed and resumed.manifest()["status"] == "done":
        notice(f"run {resumed.run_id} is complete; nothing is left to run")
        return resumed
    with writing(resumed.path) if resumed else nullcontext():
        return _measured(plan, output, resumed, replay)


def _measured(
    plan: Plan, output: RunOutput, resumed: RunFolder | None, replay: Replay | None
) -> RunFolder:
    """Load the models and run the session, in the folder of a run or in a new one."""
    config = plan.config
    choice = model_choice(config, needs_draft=any(c.knobs.num_steps for c in plan.expansion.cells))
    notice(f"loading {config.model}")
    runtime = open_runtime(choice)
    plan = _follow_head(plan, runtime.info.algorithm)
    config = plan.config
    try:
        check_replay(replay or {}, runtime.info.vocab_size)
        if resumed:
            _check_same(plan, runtime, resumed)
            _run(plan, output, runtime, resumed, replay)
            return resumed
        folder = RunFolder.create(
            Path(output.output_dir),
            config.experiment_name or config.suite,
            config.model_dump(mode="json"),
            datetime.now(UTC),
        )
        with writing(folder.path):
            folder.write_environment(fingerprint(runtime.info, config.num_threads))
            folder.write_manifest(_description(plan, runtime))
            _run(plan, output, runtime, folder, replay)
        return folder
    finally:
        runtime.close()


def _check_same(plan: Plan, runtime: Runtime, folder: RunFolder) -> None:
    """Go on only with the same code, models, questions and environment.

    Raises:
        UsageError: something that decides a count is another one; named.
    """
    here = fingerprint(runtime.info, plan.config.num_threads)
    differing = obstacles(
        folder.manifest(), folder.environment(), _description(plan, runtime), here
    )
    if differing:
        raise UsageError(
            f"run {folder.run_id} can't be gone on with: {'; '.join(differing)}",
            hint="go on where it was begun, or start it anew; what is on disk can be shown",
        )


def _follow_head(plan: Plan, algorithm: str | None) -> Plan:
    """The plan with the algorithm of the head that was loaded, for the record.

    Where the algorithm was given, another head has been refused.
    """
    if algorithm is None:
        return plan
    return replace(plan, config=plan.config.model_copy(update={"algorithm": algorithm}))


def _run(
    plan: Plan, output: RunOutput, runtime: Runtime, folder: RunFolder, replay: Replay | None
) -> None:
    """Run the session in its folder; whatever happens, the folder says how far it came."""
    folder.prepare_resume()
    profiler = open_profiler(folder.path / "trace.json") if plan.config.profile else nullcontext()
    with progress_display(output.progress) as progress:
        session = Session(
            SessionPlan(
                config=plan.config,
                cells=plan.expansion.cells,
                conversations_of=lambda cell: conversations_of(plan, cell, runtime.tokenizer),
                replay=replay,
                is_precise=lambda folder, cell_id: is_precise(folder, cell_id, plan.config),
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
            notice(f"interrupted; finished questions are in {folder.path}")
            notice(f"go on with: eaglebench run --resume {folder.run_id}")
            raise
        finally:
            folder.set_status(status, ended=_now())
    write_tables(folder)
    run = load_run(folder)
    folder.set_status(status, doubts=[doubt.sentence for doubt in doubts_of(run)])
    rows = rows_of(run)
    write_cells_csv(folder, [{**run_key(run), **row.as_dict()} for row in rows])
    write_comparison(folder, comparison_document(rows, tau_of(run)))


def is_precise(folder: RunFolder, cell_id: str, config: RunConfig) -> bool:
    """Whether every arm's throughput ratio is known well enough; looks at widths alone."""
    blocks = measured_blocks(folder)
    for arm in config.arms:
        if arm == BASELINE_ARM:
            continue
        estimate = estimate_ratio(pass_log_ratios(blocks, cell_id, arm, _other(arm)))
        if estimate is None:
            continue
        if estimate.half_width is None or estimate.half_width > config.precision:
            return False
    return True


def _other(arm: str) -> str:
    """The arm whose throughput this one is measured by."""
    return base_arm(arm) if arm.endswith(AGAIN) else BASELINE_ARM


def _description(plan: Plan, runtime: Runtime) -> dict[str, Any]:
    """The manifest of a run that begins now; written before anything is measured."""
    config, suite = plan.config, plan.suite
    package = Path(eaglebench.__file__).parent
    return {
        "status": "running",
        "argv": sys.argv[1:],
        "config": config.model_dump(mode="json"),
        "cells": [cell.cell_id for cell in plan.expansion.cells],
        "skipped": [asdict(cell) for cell in plan.expansion.skipped],
        "suite": {
            "name": suite.name,
            "version": suite.version,
            "sha256": suite.sha256,
            "questions_sha256": plan.questions.sha256 if plan.questions else None,
            "n": len(conversations_of(plan, plan.expansion.cells[0], runtime.tokenizer)),
        },
        "models": asdict(runtime.info),
        "git": git_state(package),
        "code_sha256": code_sha256(package),
        "al_definition": AL_DEFINITION,
        "started": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def model_choice(config: RunConfig, *, needs_draft: bool) -> ModelChoice:
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
    )
