"""One broken file does not keep the others from being listed, read and shown."""

from pathlib import Path

import pytest

from tests.stored_runs import invoke, make_results, scripted


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `out`."""
    folder = tmp_path_factory.mktemp("broken")
    make_results(folder)
    return folder


def test_an_unreadable_baseline_is_listed_with_the_reason(results: Path) -> None:
    """Beside those that can be read."""
    broken = results / "out" / "baselines" / "broken.jsonl"
    broken.write_text('{"kind": "cake"}\n', encoding="utf-8")

    with scripted(results):
        status, out, _ = invoke("baseline", "list", "-o", "out", env={"COLUMNS": "200"})
        refused = invoke("gate", "--baseline", "broken", "-o", "out")
    broken.unlink()

    assert status == 0
    assert "unreadable" in out
    assert "broken.jsonl:1:" in "".join(out.split())
    assert "because na" in out
    assert refused[0] == 2
