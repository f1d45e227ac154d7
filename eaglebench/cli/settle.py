"""From what was typed to a `RunConfig`: flag, environment and file first, then the suite."""

from collections.abc import Mapping
from typing import Any

import click

from eaglebench.cli.draft_config import parse_draft_config
from eaglebench.cli.options import joined
from eaglebench.cli.run_options import LIST_OPTIONS
from eaglebench.errors import UsageError
from eaglebench.plan.explain import unknown_name
from eaglebench.plan.matrix import MatrixSpec
from eaglebench.plan.matrix_file import matrix_path, read_matrix_file
from eaglebench.plan.run_config import RunConfig, make_run_config
from eaglebench.plan.suite import Suite
from eaglebench.records.knobs import BASELINE_ARM

SPEC_TOKENS = "num_speculative_tokens"
_SHAPE = {"num_steps", "eagle_topk", "num_draft_tokens"}
_RENAMED = {"question_field": "question_fields", "label": "labels"}
_NOT_IN_CONFIG = {
    "suite",
    "matrix",
    "dry_run",
    "resume",
    "output_dir",
    "progress",
    "disable_tqdm",
    "format",
    "disable_radix_cache",
    "no_baseline_arm",
    "use_rejection_sampling",
}


def given_options(ctx: click.Context) -> dict[str, Any]:
    """Values that were given by flag, environment or file, lists joined."""
    from click.core import ParameterSource

    given: dict[str, Any] = {}
    for name, value in ctx.params.items():
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        if name in LIST_OPTIONS or name == "arms":
            given[name] = joined(value)
        elif name in _RENAMED:
            given[name] = dict(value)
        elif name == "draft_config":
            given[name] = parse_draft_config(value)
        else:
            given[name] = value
    return given


def settle(given: Mapping[str, Any], suite: Suite) -> RunConfig:
    """The configuration of a run.

    Raises:
        UsageError: something given is unknown, impossible or contradicts something else.
    """
    defaults = _suite_defaults(suite)
    values: dict[str, Any] = {
        name: value for name, value in defaults.items() if name not in LIST_OPTIONS
    }
    for name, value in given.items():
        if name not in _NOT_IN_CONFIG and name not in LIST_OPTIONS:
            values[_RENAMED.get(name, name)] = value
    if values.get("algorithm") is not None:
        values["algorithm"] = str(values["algorithm"]).upper()
    values["arms"] = _arms(given, values.get("arms"))
    if given.get("use_rejection_sampling"):
        values["sampling_rule"] = _rejection_sampling(given)
    values["suite"] = suite.name
    values["matrix"] = _matrix(given, defaults)
    return make_run_config({name: value for name, value in values.items() if value is not None})


def _suite_defaults(suite: Suite) -> dict[str, Any]:
    known = [*RunConfig.model_fields, *LIST_OPTIONS]
    for name in suite.defaults:
        if name not in known:
            raise UsageError(f"suite {suite.name}, defaults: {unknown_name(name, known)}")
    return dict(suite.defaults)


def _arms(given: Mapping[str, Any], arms: Any) -> tuple[str, ...] | None:
    """The arms, after the two switches that other tools have for them."""
    if given.get("disable_radix_cache"):
        if "arms" in given:
            raise UsageError("--disable-radix-cache and --arms can't be given together")
        arms = (BASELINE_ARM,)
    if given.get("no_baseline_arm"):
        arms = RunConfig.model_fields["arms"].default if arms is None else arms
        arms = tuple(arm for arm in arms if arm != BASELINE_ARM)
    return None if arms is None else tuple(arms)


def _rejection_sampling(given: Mapping[str, Any]) -> str:
    """The rule that SGLang's switch stands for."""
    rule = "draft-distribution"
    if given.get("sampling_rule", rule) != rule:
        raise UsageError("--use-rejection-sampling and --sampling-rule target-only contradict")
    return rule


def _matrix(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> MatrixSpec | dict[str, Any]:
    """Axes of the flags over those of `--matrix` over those of the suite."""
    typed = {name: given[name] for name in LIST_OPTIONS if name in given}
    named = given.get("matrix")
    spec = read_matrix_file(matrix_path(named)) if named else MatrixSpec()
    zipped = {name for group in spec.zip for name in group}
    for name in typed:
        if name in zipped:
            raise UsageError(
                f"--{name.replace('_', '-')} is given, but the matrix file zips it with others",
                hint="change the file, or leave the flag out",
            )
    axes = {**spec.axes, **typed}
    for name in LIST_OPTIONS:
        is_settled = name in axes or name in zipped or (name in _SHAPE and SPEC_TOKENS in axes)
        if name in defaults and not is_settled:
            default = defaults[name]
            axes[name] = tuple(default) if isinstance(default, list) else (default,)
    return {
        "axes": axes,
        "zip": spec.zip,
        "include": spec.include,
        "exclude": spec.exclude,
    }
