"""The compatibility matrix on the real hybrid model: prefix caching changes no answer and no draft.

Page sizes 1 and 16, prompts whole and in chunks of 64, with the prefix cache and without it; the
whole of it, on both targets, is `make compatibility`. Skipped where the model is not in the cache.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from eaglebench.assets.catalog import asset
from eaglebench.bench.documents import load_run, rows_of
from eaglebench.cli.main import main
from eaglebench.report.rows import Row
from eaglebench.store.run_folder import find_run

MODEL = "smollm2-135m-swa"
SMALL = {
    "mtbench": ("-n", "2", "--max-new-tokens", "48"),
    "page-edges": ("-n", "12"),
}
"""Fewer questions and shorter answers; those of page-edges are short as they are."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not asset(MODEL).path.exists(), reason=f"{MODEL} is not fetched"),
]


@cache
def measured(suite: str) -> tuple[Row, ...]:
    """A row a cell and arm."""
    with TemporaryDirectory() as folder:
        args = ("--model", MODEL, "--matrix", "compatibility", *SMALL[suite])
        quiet = ("--progress", "none", "--output-dir", folder)
        result = CliRunner().invoke(main, ["run", suite, *args, *quiet])
        assert result.exit_code == 0, result.stderr
        return tuple(rows_of(load_run(find_run(Path(folder), "latest"))))


@pytest.mark.parametrize("suite", SMALL)
def test_the_cache_changes_no_answer_and_no_draft(suite: str) -> None:
    """Every turn is identical to that without a cache, or parts at a near-tie that is listed."""
    radix = [row for row in measured(suite) if row.arm == "radix"]

    assert len(radix) == 4
    for row in radix:
        assert row.difference is not None
        pairs = row.difference.pairs
        assert pairs
        kinds = {pair.kind for pair in pairs if pair.kind != "diverged-prompt"}
        assert kinds <= {"identical", "near-tie"}
        assert any(pair.kind == "identical" for pair in pairs)
        assert (row.counts.cached_tokens or 0) > 0


def test_there_was_something_to_compare() -> None:
    """Drafts were accepted in more than three steps of ten, both suites together."""
    counts = [row.counts for suite in SMALL for row in measured(suite)]

    assert sum(c.accepted or 0 for c in counts) > 0.3 * sum(c.verify_steps or 0 for c in counts)
