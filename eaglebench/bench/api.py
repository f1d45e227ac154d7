"""What Python code asks for: run, load, judge, compare, by the use cases that the commands call.

Options are those of `eaglebench run`, by the names of the table of options; errors are raised
(`eaglebench.errors`), and nothing is printed.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglebench.bench.compare import pair_runs
from eaglebench.bench.judge import judge_folder, parse_renames
from eaglebench.bench.stored_run import Run, open_run, root_of
from eaglebench.errors import UsageError
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.plan.option import Notice
from eaglebench.progress import Progress, SilentProgress
from eaglebench.records.flags import DEFAULT_OUTPUT, name_of
from eaglebench.records.verdict import Finding, Judgement, Verdict
from eaglebench.report.document import ReportDocument
from eaglebench.report.side_by_side import PairedRow

if TYPE_CHECKING:
    from pandas import DataFrame

Renames = Mapping[str, str] | Sequence[str]
"""Arms under other names, as a mapping or as `--as` has them (`unigram=radix`)."""
_ELSEWHERE = {"output_dir", "progress", "resume", "disable_tqdm", "format", "dry_run"}
"""Options of the command that are parameters here, or make no sense here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs, cell by cell and arm by arm, and the judgement on the later one."""

    before: str
    after: str
    rows: tuple[PairedRow, ...]
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """The heaviest verdict."""
        return self.judgement.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """By cell, arm and metric."""
        return self.judgement.findings

    @property
    def cells(self) -> "DataFrame":
        """One row a cell and arm that both runs have."""
        import pandas as pd  # noqa: PLC0415  # slow to import; the command needs none

        return pd.DataFrame(self.cell_values()).convert_dtypes()

    def cell_values(self) -> list[dict[str, Any]]:
        """The same as plain values."""
        from eaglebench.report.json_document import difference_document  # noqa: PLC0415  # seldom needed

        return [
            {"cell_id": row.cell_id, "arm": row.arm, **difference_document(row.difference)}
            for row in self.rows
        ]


def run(
    suite: str | None = None,
    *,
    output_dir: Path | str = DEFAULT_OUTPUT,
    resume: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
    **options: Any,
) -> Run:
    """Measure a suite in every cell of the matrix and every arm.

    Args:
        suite: a name or a file; None only beside `resume`.
        output_dir: where runs are kept.
        resume: a run to go on with, by id, path or `latest`.
        progress: is told how far it is.
        notice: is told in a line what goes on.
        options: those of `eaglebench run`, such as `page_size=[1, 16]`; None is as if not given.

    Raises:
        UsageError: an option is unknown, impossible or without effect, or the models don't fit.
        StorageError: the results can't be written.
    """
    from eaglebench.bench.measure import measure  # noqa: PLC0415  # judging needs no backends
    from eaglebench.bench.prepare import prepare  # noqa: PLC0415

    if suite is None and resume is None:
        raise UsageError("no suite is named", hint='eaglebench.run("tiny")')
    given, typed = _given(options)
    told = notice or _ignore
    setup = prepare(
        suite, given, resume=resume, output_dir=str(output_dir), sources=typed, notice=told
    )
    shown = nullcontext(progress or SilentProgress())
    return Run(measure(setup, str(output_dir), progress=shown, notice=told))


def load(
    run: Run | Path | str = "latest",
    *,
    output_dir: Path | str | None = None,
    notice: Notice | None = None,
) -> Run:
    """A stored run: an id, a path, `latest` or `latest~1`, which count runs with an answer alone.

    Raises:
        UsageError: there is no such run.
    """
    return open_run(run, output_dir, notice)


def judge(
    run: Run | Path | str = "latest",
    *,
    baseline: Path | str | None = None,
    fail_on: Sequence[str] = (),
    renamed: Renames = (),
    across_environments: bool = False,
    fail_on_new: bool = False,
    output_dir: Path | str | None = None,
    notice: Notice | None = None,
) -> Judgement:
    """Judge a run against a baseline; the verdict is `PASS`, `REGRESSED`, ...

    Args:
        run: itself, an id, a path, `latest` or `latest~1`.
        baseline: name or file; None is the one named like the run's suite.
        fail_on: rules such as `al:1%`; without any every exact count has to be no worse.
        renamed: arms of the run that are judged as other arms of the baseline.
        across_environments: judge acceptance by statistics where machines or libraries differ.
        fail_on_new: a cell the baseline lacks is not comparable.
        output_dir: where runs and baselines are; None is where the run lies, or `results`.
        notice: is told which run and baseline were taken.

    Raises:
        NothingMeasuredError: there is no such baseline, or the run holds nothing.
        UsageError: there is no such run, or a rule or an arm is none.
    """
    return judged_document(
        run,
        baseline=baseline,
        fail_on=fail_on,
        renamed=renamed,
        across_environments=across_environments,
        fail_on_new=fail_on_new,
        output_dir=output_dir,
        notice=notice,
    ).judgement


def judged_document(
    run: Run | Path | str,
    *,
    baseline: Path | str | None,
    fail_on: Sequence[str] = (),
    renamed: Renames = (),
    across_environments: bool = False,
    fail_on_new: bool = False,
    output_dir: Path | str | None = None,
    notice: Notice | None = None,
) -> ReportDocument:
    """The run's document with the judgement against a baseline; all else as in `judge`."""
    policy = Policy(
        rules=parse_rules([fail_on] if isinstance(fail_on, str) else fail_on),
        across_environments=across_environments,
        fail_on_new=fail_on_new,
    )
    return judge_folder(
        open_run(run, output_dir, notice, is_strict=True).folder,
        root_of(run, output_dir),
        None if baseline is None else str(baseline),
        policy,
        _renames(renamed),
        notice=notice or _ignore,
    )


def compare(
    before: Run | Path | str = "latest~1",
    after: Run | Path | str = "latest",
    *,
    renamed: Renames = (),
    across_environments: bool = False,
    output_dir: Path | str | None = None,
    notice: Notice | None = None,
) -> Comparison:
    """Compare a later run with an earlier one, question by question.

    Args:
        before: the earlier run: itself, an id, a path, `latest` or `latest~1`.
        after: the later run, in the same way.
        renamed: arms of `after` that are compared with other arms of `before`.
        across_environments: also where libraries or devices differ.
        output_dir: where runs are.
        notice: is told of runs that were passed over.

    Raises:
        NothingMeasuredError: one of them holds no finished turn.
        UsageError: there is no such run or arm.
    """
    earlier, later = (open_run(each, output_dir, notice) for each in (before, after))
    rows, judgement = pair_runs(
        earlier, later, _renames(renamed), across_environments=across_environments
    )
    return Comparison(
        before=earlier.run_id, after=later.run_id, rows=tuple(rows), judgement=judgement
    )


def _given(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bool]]:
    """Options as the command line would give them, and which parameters they were typed as.

    Raises:
        UsageError: one is unknown, or another tool's name for one.
    """
    from eaglebench.plan.explain import unknown_name  # noqa: PLC0415  # judging plans nothing
    from eaglebench.plan.options import all_options, parameter_of  # noqa: PLC0415

    known = {name: each for name, each in all_options().items() if name not in _ELSEWHERE}
    aliases = {name_of(alias): name for name, each in known.items() for alias in each.aliases}
    given, typed = {}, {}
    for name, value in options.items():
        if name not in known:
            if name in aliases:
                raise UsageError(f"{name} is called {aliases[name]} here")
            raise UsageError(unknown_name(name, list(known)))
        option = known[name]
        if value is None or (option.kind == "flag" and value is False):
            continue
        if option.is_joined:
            value = _listed(value)  # noqa: PLW2901
        elif option.kind == "choice":
            value = dict(option.synonyms).get(value, value)  # noqa: PLW2901
        given[name] = value
        typed[parameter_of(name, option)] = True
    return given, typed


def _listed(value: Any) -> tuple[Any, ...]:
    """One value, or each of several once."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    return tuple(dict.fromkeys(value)) if isinstance(value, Sequence) else (value,)


def _renames(renamed: Renames) -> dict[str, str]:
    pairs = renamed.items() if isinstance(renamed, Mapping) else ()
    return parse_renames([f"{mine}={other}" for mine, other in pairs] or list(renamed))


def _ignore(_line: str) -> None:
    """Nobody listens."""
