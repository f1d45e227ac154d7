"""The command `eaglebench`: finds a command, runs it, turns errors into messages and statuses.

Results go to standard output; notices, progress and errors go to standard error.
"""

import errno
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from eaglebench.cli.exit_codes import CRASH, INTERRUPTED, PASS, VerdictStatus, exit_code
from eaglebench.cli.lazy_group import LazyGroup
from eaglebench.cli.streams import guard_streams, unshown
from eaglebench.errors import EaglebenchError, InvariantError, StorageError, UsageError
from eaglebench.files import why

COMMANDS = {
    "run": "Measure a suite in every cell and arm.",
    "show": "Print the tables of a stored run.",
    "list": "List stored runs.",
    "compare": "Compare two runs question by question.",
    "explain": "Follow one question step by step in two arms.",
    "gate": "Judge a run against a baseline; for CI.",
    "baseline": "Keep the counts of good runs.",
    "report": "Write a run as HTML, Markdown, JUnit, ...",
    "calibrate": "Measure this machine's noise, A against A.",
    "diagnose": "Try the usual suspects of a low acceptance length.",
    "history": "Follow a metric over the stored runs.",
    "bisect": "Find the commit that made counts worse.",
    "ab": "Time two versions of the code in turns.",
    "engines": "Look at the engines that run can use.",
    "suites": "List what can be run.",
    "matrix": "Look at a matrix file.",
    "assets": "Fetch models and questions.",
    "heads": "Look at a draft head, or write it in another format.",
    "train-head": "Make a draft head for a target.",
    "env": "Print what a run would record of this machine.",
    "help": "Longer explanations.",
    "completion": "Print a script for shell completion.",
}
"""What each does, in one line; `lazy_group.py` says where it is found."""


class MainGroup(LazyGroup):
    """The outermost command: the one place where an error becomes a message and a status."""

    def main(
        self,
        args: Sequence[str] | None = None,
        *more: Any,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; in standalone mode end the process with the status of `exit_codes`."""
        if not standalone_mode:
            return self._run(args, *more, **extra)
        sys.exit(self._status(args, *more, **extra))

    def _run(self, *args: Any, **extra: Any) -> Any:
        run: Any = super().main
        return run(*args, standalone_mode=False, **extra)

    def _status(self, args: Sequence[str] | None, *more: Any, **extra: Any) -> int:
        guard_streams()
        try:
            result = self._run(args, *more, **extra)
        except EaglebenchError as error:
            _complain(error)
            return exit_code(error)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return error.exit_code
        except click.ClickException as error:
            _complain(_in_our_words(error))
            return error.exit_code
        except click.Abort:
            click.echo("interrupted", err=True)
            return INTERRUPTED
        except OSError as error:
            if error.errno == errno.EPIPE:
                return PASS
            failed = StorageError(f"{error.filename or 'a file'} can't be used: {why(error)}")
            _complain(failed)
            return exit_code(failed)
        return _shown(result)


def _in_our_words(error: click.ClickException) -> EaglebenchError:
    """What click found wrong, told as everything else that is wrong."""
    words = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help" if context is not None else None
    return UsageError(f"{words[:1].lower()}{words[1:]}", hint=hint)


def _shown(result: object) -> int:
    """The status of a command that came to its end: a verdict stands, shown or not."""
    reason = unshown()
    if reason is not None:
        _complain(StorageError(f"standard output can't be written: {reason}"))
    status = result if isinstance(result, int) else PASS
    is_lost = reason is not None and not isinstance(result, VerdictStatus)
    return CRASH if is_lost and status == PASS else status


def _complain(error: EaglebenchError) -> None:
    click.echo(f"error: {error.message}", err=True)
    if error.hint:
        click.echo(f"  try: {error.hint}", err=True)
    if isinstance(error, InvariantError):
        click.echo("  this is a fault in eaglebench, not in your input; please report it", err=True)


def _version() -> str:
    try:
        return version("eaglebench")
    except PackageNotFoundError:
        return "unknown (not installed)"


def _print_version(ctx: click.Context, _param: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        click.echo(f"eaglebench {_version()}")
        ctx.exit()


main = MainGroup(
    name="eaglebench",
    lazy=COMMANDS,
    help=(
        "Measure what prefix caching, paging, chunking and slot allocation do to EAGLE "
        "speculative decoding.\n\nStart with: eaglebench run tiny"
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version and leave.",
        )
    ],
)
