"""The one table of a run's options, put together from where each of them is declared.

Flags, aliases, the environment's names, keys of option files, axes, what an option needs, what a run
is compared by, and the pages of help are made from it.
"""

from collections.abc import Mapping

from eaglebench.plan.axes import AXES
from eaglebench.plan.option import (
    CACHE,
    OUTPUT,
    OUTPUT_DIR,
    SAMPLING,
    SECTIONS,
    SESSION,
    SPECULATION,
    Need,
    Option,
)
from eaglebench.plan.question_fields import DRAWS_DRAFTS
from eaglebench.plan.run_config import RunConfig, under_present_names
from eaglebench.records.flags import flag_of, name_of
from eaglebench.records.knobs import BASELINE_ARM, EngineKnobs

HAS_BASELINE_ARM = Need(
    f"{BASELINE_ARM} is not among the arms",
    lambda run: (
        BASELINE_ARM in run.given.get("arms", run.suite.defaults.get("arms", (BASELINE_ARM,)))
    ),
)
SHOWS_PROGRESS = Need(
    "--disable-tqdm takes its place", lambda run: not run.given.get("disable_tqdm")
)

SWITCHES: dict[str, Option] = {
    "disable_radix_cache": Option(
        section=CACHE,
        help="Only the no-cache arm.",
        kind="flag",
        aliases=("--no-enable-prefix-caching",),
    ),
    "no_baseline_arm": Option(
        section=CACHE, help="All arms but no-cache.", kind="flag", needs=(HAS_BASELINE_ARM,)
    ),
    "use_rejection_sampling": Option(
        section=SAMPLING,
        help="The rule draft-distribution, by SGLang's name.",
        kind="flag",
        aliases=("--speculative-use-rejection-sampling",),
        needs=(DRAWS_DRAFTS,),
    ),
    "speculative_config": Option(
        section=SPECULATION,
        help="vLLM's JSON: method, model, num_speculative_tokens, draft_sample_method.",
        kind="object",
    ),
    "matrix": Option(
        section=SESSION, unit="FILE", help="YAML, TOML or JSON file; or compatibility."
    ),
    "dry_run": Option(
        section=SESSION,
        help="Show cells and an estimate of time; load nothing.",
        kind="flag",
        at_resume=True,
    ),
    "resume": Option(
        section=SESSION,
        unit="RUN",
        help="Go on with a run (id, folder, latest).",
        alone="latest",
        in_environment=False,
        at_resume=True,
    ),
    "output_dir": OUTPUT_DIR,
    "progress": Option(
        section=OUTPUT,
        help="How progress is shown, on standard error.",
        kind="choice",
        words=("auto", "rich", "plain", "none"),
        default="auto",
        needs=(SHOWS_PROGRESS,),
        at_resume=True,
    ),
    "disable_tqdm": Option(
        section=OUTPUT, kind="flag", is_hidden=True, in_environment=False, at_resume=True
    ),
    "format": Option(
        section=OUTPUT,
        help="What goes to standard output.",
        kind="choice",
        words=("table", "json"),
        default="table",
        at_resume=True,
    ),
}
"""Options that are no field of the configuration: they stand for some, or say what to do."""


def config_options() -> dict[str, Option]:
    """Options that are fields of the configuration, by field."""
    return {
        name: part
        for name, field in RunConfig.model_fields.items()
        for part in field.metadata
        if isinstance(part, Option)
    }


def all_options() -> dict[str, Option]:
    """Every option by its name, in the order of `run --help`."""
    axes = {name: axis.listed for name, axis in AXES.items()}
    fields = config_options()
    found = {**axes, **fields, **SWITCHES}
    return dict(sorted(found.items(), key=lambda each: SECTIONS.index(each[1].section)))


def typed_flag(name: str, option: Option) -> str:
    """The flag of an option: that of `labels` is `--label`."""
    return option.flag or flag_of(name)


def parameter_of(name: str, option: Option) -> str:
    """The name of an option as a command has it: `labels` is typed as `--label`."""
    return name_of(typed_flag(name, option))


def default_text(name: str, option: Option) -> str:
    """What happens unsaid, for people; empty where there is nothing to say."""
    if option.default is not None:
        return option.default
    if name in RunConfig.model_fields:
        default = RunConfig.model_fields[name].default
    else:
        default = getattr(EngineKnobs(), name, None) if name in AXES else None
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if isinstance(default, float):
        return f"{default:g}"
    return str(default) if isinstance(default, int | str) and option.kind != "flag" else ""


def workload_of(config: Mapping[str, object]) -> dict[str, object]:
    """The options that decide what is computed in a cell; runs that differ here can't be compared.

    An option is among them unless its declaration says otherwise; so is one of another version,
    which no declaration knows.
    """
    harmless = {n for n, option in config_options().items() if option.affects != "work"}
    harmless |= {"suite", "matrix"}  # compared by its digest, and cell by cell
    return {
        name: value for name, value in under_present_names(config).items() if name not in harmless
    }
