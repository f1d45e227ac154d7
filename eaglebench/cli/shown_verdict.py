"""A verdict as a table and in files for CI: what can't be shown is a warning, and the verdict stands."""

from collections.abc import Callable
from pathlib import Path

import click

from eaglebench.cli.console import notice, stdout_console
from eaglebench.cli.exit_codes import VerdictStatus, verdict_code
from eaglebench.errors import EaglebenchError, UsageError
from eaglebench.files import append_text, make_folder, write_text
from eaglebench.foreign import foreign_code
from eaglebench.records.verdict import Judgement


def show_verdict(
    judgement: Judgement,
    *,
    is_strict: bool = False,
    above: Callable[[], None] = lambda: None,
) -> VerdictStatus:
    """Print a judgement, under what `above` prints; the status that it has earned."""
    from eaglebench.report.terminal import render_judgement

    beside_verdict("what was compared", above)
    if not beside_verdict("findings", lambda: render_judgement(judgement, stdout_console())):
        click.echo(f"{judgement.verdict} {judgement.candidate} against {judgement.baseline}")
    return verdict_code(judgement.verdict, is_strict=is_strict)


def write_beside(path: Path, make_text: Callable[[], str], option: str) -> None:
    """Write a file that `option` asks for; folders that are missing are made."""

    def write() -> None:
        make_folder(path.parent)
        write_text(path, make_text())

    beside_verdict(option, write)


def append_beside(path: Path, make_text: Callable[[], str], option: str) -> None:
    """Write at the end of a file that somebody else has made; a missing folder is theirs to make."""
    beside_verdict(option, lambda: append_text(path, make_text()))


def beside_verdict(name: str, show: Callable[[], None]) -> bool:
    """Show a thing; whether that went well."""
    try:
        with foreign_code(lambda reason: UsageError(f"can't be shown: {reason}")):
            show()
    except EaglebenchError as error:
        notice(f"warning: {name}: {error.message}; the verdict stands")
        return False
    return True
