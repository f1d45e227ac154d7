"""Runs of several setups side by side, and whether what was measured can be trusted."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from eaglebench.cli.console import notice, stdout_console
from eaglebench.cli.exit_codes import trust_code
from eaglebench.records.doubt import Doubt

if TYPE_CHECKING:
    from eaglebench.bench.stored_run import Run


def trust_status(doubts: Iterable[Doubt], whose: str = "") -> int:
    """Say what takes results away; the status that this is worth."""
    doubts = list(doubts)
    for doubt in doubts:
        if doubt.is_fatal:
            notice(f"{whose}not to be trusted: {doubt.sentence}")
    return trust_code(doubts)


def print_setups(runs: Sequence["Run"], *, is_json: bool) -> int:
    """Print several runs as one table or one document: which setup is best is no verdict on any."""
    from eaglebench.bench.side_by_side import hold_side_by_side
    from eaglebench.report.answer import answer_lines, headline
    from eaglebench.report.setups_table import setups_answers, setups_table
    from eaglebench.report.terminal import render_table

    found = hold_side_by_side(runs)
    if is_json:
        documents = [
            {"run": run.manifest, "cells": [row.as_dict() for row in run.document.rows]}
            for run in runs
        ]
        setups = [asdict(row) for row in found.rows]
        click.echo(json.dumps({"runs": documents, "setups": setups}, indent=1))
    else:
        render_table(setups_table(found.rows, is_judged=False), stdout_console())
        for note in found.judgement.notes:
            click.echo(f"note: {note}")
        click.echo()
        names = {row.run_id: row.name for row in found.rows}
        for run in runs:
            verdict, lines = headline(run.document), answer_lines(run.document)
            click.echo(f"{names[run.run_id]}: {verdict} {lines[0]}")
        click.echo("\n".join(setups_answers(found.rows)))
    return max(trust_status(run.doubts, f"{run.run_id}: ") for run in runs)
