"""From what was given to a `RunConfig`: what the user gave first, then the suite."""

from collections.abc import Mapping
from typing import Any

from eaglebench.errors import UsageError
from eaglebench.plan.axes import AXES
from eaglebench.plan.explain import unknown_name
from eaglebench.plan.matrix import MatrixSpec
from eaglebench.plan.matrix_file import make_matrix, matrix_path, read_matrix_file
from eaglebench.plan.option import Notice, Sources
from eaglebench.plan.options import SWITCHES
from eaglebench.plan.run_config import RunConfig, make_run_config, under_present_names
from eaglebench.plan.setups import refuse_several
from eaglebench.plan.suite import Suite
from eaglebench.records.flags import flag_of
from eaglebench.records.knobs import BASELINE_ARM

SPEC_TOKENS = "num_speculative_tokens"
_SHAPE = {"num_steps", "eagle_topk", "num_draft_tokens"}
_RIVALS = {
    SPEC_TOKENS: tuple(sorted(_SHAPE)),
    "disable_radix_cache": ("arms",),
    "use_rejection_sampling": ("sampling_rule",),
}
"""Options that can't be given together, because each settles what the other does."""


def settle(
    given: Mapping[str, Any],
    suite: Suite,
    sources: Sources | None = None,
    *,
    notice: Notice = lambda _: None,
) -> RunConfig:
    """The configuration of a run.

    Args:
        given: values of options.
        suite: says what holds where nothing was given.
        sources: which options were typed; None is all of them.
        notice: is told what the environment or a file said in vain.

    Raises:
        UsageError: something given is unknown, impossible or contradicts something else.
    """
    refuse_several(given)
    given, defaults = under_present_names(given), _suite_defaults(suite)
    given = without_overruled(given, sources or {}, notice=notice)
    values = {name: value for name, value in defaults.items() if name not in AXES}
    values |= {name: value for name, value in given.items() if name not in {*AXES, *SWITCHES}}
    if values.get("algorithm") is not None:
        values["algorithm"] = str(values["algorithm"]).upper()
    values["arms"] = _arms(given, values.get("arms"))
    if given.get("use_rejection_sampling"):
        values["sampling_rule"] = _rejection_sampling(given)
    values["suite"] = suite.name
    values["matrix"] = _matrix(given, defaults)
    return make_run_config({name: value for name, value in values.items() if value is not None})


def without_overruled(
    given: Mapping[str, Any], sources: Sources, *, notice: Notice
) -> dict[str, Any]:
    """What is left of what was given when the command line has taken the place of defaults.

    An option out of the environment or a file gives way to one that was typed and settles the same
    thing: an axis to a matrix file that has it, arms to the switch for `no-cache` alone.
    """
    typed = {name for name in given if sources.get(name, True)}
    settled: dict[str, str] = {}
    if "matrix" in typed:
        spec = _named_matrix(given)
        axes = {*spec.axes, *(name for group in spec.zip for name in group)}
        settled |= dict.fromkeys(axes, "--matrix")
    strong = {*typed, *settled}
    for one, others in _RIVALS.items():
        pairs = [*((one, other) for other in others), *((other, one) for other in others)]
        settled |= {weak: flag_of(by) for by, weak in pairs if by in strong and weak not in strong}
    overruled = {name: by for name, by in settled.items() if name in given and name not in typed}
    for name, by in overruled.items():
        notice(f"note: {flag_of(name)}, which was not typed, gives way to {by}")
    return {name: value for name, value in given.items() if name not in overruled}


def _named_matrix(given: Mapping[str, Any]) -> MatrixSpec:
    named = given.get("matrix")
    return _spec(named) if named else MatrixSpec()


def _suite_defaults(suite: Suite) -> dict[str, Any]:
    known = [*RunConfig.model_fields, *AXES]
    defaults = under_present_names(suite.defaults)
    for name in defaults:
        if name not in known:
            raise UsageError(f"suite {suite.name}, defaults: {unknown_name(name, known)}")
    return defaults


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


def _spec(named: str | Mapping[str, Any]) -> MatrixSpec:
    """The matrix of a file, or of Python code that says it in the same words."""
    if isinstance(named, Mapping):
        return make_matrix(named, "matrix")
    return read_matrix_file(matrix_path(named))


def _matrix(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> MatrixSpec | dict[str, Any]:
    """Axes of the flags over those of `--matrix` over those of the suite."""
    typed = {name: given[name] for name in AXES if name in given}
    spec = _named_matrix(given)
    zipped = {name for group in spec.zip for name in group}
    for name in typed:
        if name in zipped:
            raise UsageError(
                f"{flag_of(name)} is given, but the matrix file zips it with others",
                hint="change the file, or leave the flag out",
            )
    axes = {**spec.axes, **typed}
    for name in AXES:
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
