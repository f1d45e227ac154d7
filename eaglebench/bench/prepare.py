"""How a run is put together: suite, configuration, cells, questions; then what to do with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eaglebench.assets.catalog import asset as asset_of
from eaglebench.assets.fetch import ensure
from eaglebench.assets.hub_questions import fetch_questions, is_hub_name
from eaglebench.assets.resolve import check_model_name
from eaglebench.bench.earlier_runs import stored_config
from eaglebench.bench.engine_check import check_engine, with_own_arms
from eaglebench.bench.estimate import (
    ByteTokenizer,
    Estimate,
    estimate,
    estimate_document,
    estimate_lines,
)
from eaglebench.files import user_path
from eaglebench.plan.cell import Cell
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.effects import RunSituation, check_resumed, check_run
from eaglebench.plan.matrix import Expansion, expand
from eaglebench.plan.option import Notice, Sources
from eaglebench.plan.questions import QuestionFile, read_question_file
from eaglebench.plan.run_config import RunConfig
from eaglebench.plan.settle import settle
from eaglebench.plan.speculative_config import NAME as SPECULATIVE_CONFIG
from eaglebench.plan.speculative_config import expanded, stood_for
from eaglebench.plan.suite import Suite, load_suite
from eaglebench.plan.workload import WorkloadInputs, make_conversations, needs_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
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
    output_dir: str,
    sources: Sources,
    notice: Notice,
) -> RunSetup:
    """Check everything that can be checked without a model.

    Args:
        suite_name: None goes on with a stored run, which has a suite.
        given: values of options.
        resume: the run to go on with.
        output_dir: where runs are.
        sources: which of `given` came from the user, and which of these were typed.
        notice: is told what is fetched and what is without effect.

    Raises:
        UsageError: something that was given can't be run.
    """
    given, sources = expanded(given), _named_sources(given, sources)
    if suite_name is None:
        check_resumed(sources, notice=notice)
        config = stored_config(output_dir, resume or "latest")
        suite = load_suite(config.suite)
    else:
        suite = load_suite(suite_name)
        config = settle(given, suite, sources, notice=notice)
        config = with_own_arms(config, given, notice)
    for model in (config.model, config.draft_model):
        if model is not None:
            check_model_name(model)
    expansion = check_engine(config, expand(config.matrix, config.limits))
    if suite_name is not None:
        check_run(
            RunSituation(given=given, config=config, suite=suite, cells=expansion.cells),
            sources,
            notice=notice,
        )
    questions = _questions(config, suite, may_fetch=not given.get("dry_run"), notice=notice)
    setup = RunSetup(
        suite=suite, config=config, expansion=expansion, questions=questions, resume=resume
    )
    _check_workload(setup)
    return setup


def _named_sources(given: Mapping[str, Any], sources: Sources) -> Sources:
    """The sources, with options that another one stands for from where that one came."""
    if SPECULATIVE_CONFIG not in given:
        return sources
    is_typed = sources.get(SPECULATIVE_CONFIG, True)
    return {**dict.fromkeys(stood_for(given[SPECULATIVE_CONFIG]), is_typed), **sources}


def dry_run_lines(setup: RunSetup) -> list[str]:
    """Cells, skipped cells and an estimate of time."""
    return estimate_lines(setup.config, setup.expansion, _expected(setup))


def dry_run_document(setup: RunSetup) -> dict[str, object]:
    """The same for other programs."""
    return estimate_document(setup.config, setup.expansion, _expected(setup))


def _expected(setup: RunSetup) -> Estimate | None:
    """None where the questions have not been fetched."""
    if setup.questions is None:
        return None
    tokenizer = ByteTokenizer()
    made = (conversations_of(setup, cell, tokenizer) for cell in setup.expansion.cells)
    return estimate(setup.config, made)


def conversations_of(setup: RunSetup, cell: Cell, tokenizer: Any) -> tuple[Conversation, ...]:
    """The conversations of one cell."""
    assert setup.questions is not None
    return make_conversations(
        setup.suite.workload,
        WorkloadInputs(
            questions=setup.questions.questions,
            seed=setup.config.seed,
            num_questions=setup.config.num_questions,
            system_prompt=setup.config.system_prompt,
            prompt_format=setup.config.prompt_format,
            tokenizer=tokenizer,
            page_size=cell.knobs.page_size,
            chunked_prefill_size=cell.knobs.chunked_prefill_size,
        ),
    )


def _questions(
    config: RunConfig, suite: Suite, *, may_fetch: bool, notice: Notice
) -> QuestionFile | None:
    if config.question_file is not None:
        path = user_path(config.question_file)
        if is_hub_name(config.question_file):
            if not may_fetch:
                return None
            path = fetch_questions(config.question_file, notice=notice)
        found = read_question_file(path, config.question_fields)
        for remark in found.remarks:
            notice(f"note: {config.question_file}: {remark}")
        return found
    asset = suite.questions.asset
    if not may_fetch and not asset_of(asset).path.exists():
        return None
    return read_question_file(ensure(asset, notice=notice), suite.questions.fields)


def _check_workload(setup: RunSetup) -> None:
    """Make the conversations once, so that a workload that can't be made is known now."""
    if setup.questions is not None:
        is_counted_in_tokens = needs_tokenizer(setup.suite.workload)
        conversations_of(
            setup, setup.expansion.cells[0], ByteTokenizer() if is_counted_in_tokens else None
        )
