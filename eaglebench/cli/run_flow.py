"""How a run is put together: suite, configuration, cells, questions; then what to do with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from eaglebench.assets.catalog import asset as asset_of
from eaglebench.assets.fetch import ensure
from eaglebench.assets.hub_questions import fetch_questions, is_hub_name
from eaglebench.cli.console import notice
from eaglebench.cli.dry_run import ByteTokenizer, dry_run_lines, estimate
from eaglebench.cli.effects import Sources
from eaglebench.cli.run_effects import RunSituation, check_resumed, check_run
from eaglebench.cli.settle import settle
from eaglebench.files import user_path
from eaglebench.plan.cell import Cell
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.matrix import Expansion, expand
from eaglebench.plan.questions import QuestionFile, read_question_file
from eaglebench.plan.run_config import RunConfig
from eaglebench.plan.suite import Suite, load_suite
from eaglebench.plan.workload import WorkloadInputs, make_conversations, needs_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """Where results go and how they are shown."""

    output_dir: str
    progress: str
    is_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run that could start; nothing that the user gave is wrong as far as one can tell.

    `questions` is None only in a dry run whose questions have not been fetched.
    """

    suite: Suite
    config: RunConfig
    expansion: Expansion
    questions: QuestionFile | None
    resume: str | None = None


def prepare(
    suite_name: str | None,
    given: Mapping[str, Any],
    *,
    resume: str | None,
    output: RunOutput,
    sources: Sources,
) -> Plan:
    """Check everything that can be checked without a model.

    Args:
        suite_name: None goes on with a stored run, which has a suite.
        given: values of options.
        resume: the run to go on with.
        output: where results go.
        sources: which of `given` came from the user, and which of these were typed.

    Raises:
        UsageError: something that was given can't be run.
    """
    if suite_name is None:
        from eaglebench.cli.stored import stored_config

        check_resumed(sources)
        config = stored_config(output.output_dir, resume or "latest")
        suite = load_suite(config.suite)
    else:
        suite = load_suite(suite_name)
        config = settle(given, suite)
    expansion = expand(config.matrix, config.limits)
    if suite_name is not None:
        check_run(
            RunSituation(given=given, config=config, suite=suite, cells=expansion.cells), sources
        )
    questions = _questions(config, suite, may_fetch=not given.get("dry_run"))
    plan = Plan(suite=suite, config=config, expansion=expansion, questions=questions, resume=resume)
    _check_workload(plan)
    return plan


def dry_run(plan: Plan) -> None:
    """Print cells, skipped cells and an estimate of time."""
    expected = None
    if plan.questions is not None:
        expected = estimate(plan.config, plan.suite, plan.questions.questions, plan.expansion)
    for line in dry_run_lines(plan.config, plan.expansion, expected):
        click.echo(line)


def conversations_of(plan: Plan, cell: Cell, tokenizer: Any) -> tuple[Conversation, ...]:
    """The conversations of one cell."""
    assert plan.questions is not None
    return make_conversations(
        plan.suite.workload,
        WorkloadInputs(
            questions=plan.questions.questions,
            seed=plan.config.seed,
            num_questions=plan.config.num_questions,
            system_prompt=plan.config.system_prompt,
            prompt_format=plan.config.prompt_format,
            tokenizer=tokenizer,
            page_size=cell.knobs.page_size,
            chunked_prefill_size=cell.knobs.chunked_prefill_size,
        ),
    )


def _questions(config: RunConfig, suite: Suite, *, may_fetch: bool) -> QuestionFile | None:
    if config.question_file is not None:
        path = user_path(config.question_file)
        if is_hub_name(config.question_file):
            if not may_fetch:
                return None
            path = fetch_questions(config.question_file, notice=notice)
        return read_question_file(path, config.question_fields)
    asset = suite.questions.asset
    if not may_fetch and not asset_of(asset).path.exists():
        return None
    return read_question_file(ensure(asset, notice=notice), suite.questions.fields)


def _check_workload(plan: Plan) -> None:
    """Make the conversations once, so that a workload that can't be made is known now."""
    if plan.questions is not None:
        is_counted_in_tokens = needs_tokenizer(plan.suite.workload)
        conversations_of(
            plan, plan.expansion.cells[0], ByteTokenizer() if is_counted_in_tokens else None
        )
