"""One broken file does not keep the others from being listed, read and shown."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eaglebench.store.run_folder import find_run
from tests.stored_runs import invoke, make_results, scripted

WIDE = {"COLUMNS": "400"}
"""No sentence of a table is folded, whatever the terminal of the tests."""


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
        status, out, _ = invoke("baseline", "list", "-o", "out", env=WIDE)
        refused = invoke("gate", "--baseline", "broken", "-o", "out")
    broken.unlink()

    assert status == 0
    assert "unreadable" in out
    assert "broken.jsonl:1:" in "".join(out.split())
    assert "because na" in out
    assert refused[0] == 2


@pytest.mark.parametrize("lost", ["steps.parquet", "half"])
def test_a_run_that_lost_its_verify_steps_passes_nothing(
    results: Path, tmp_path: Path, lost: str
) -> None:
    """It is shown with the reason; positions are not compared, and that is no PASS."""
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    table = find_run(tmp_path / "out", "latest~1").path / "steps.parquet"
    rows = pq.read_table(table)
    table.unlink()
    if lost == "half":
        pq.write_table(rows.slice(0, len(rows) // 2), table)

    with scripted(tmp_path):
        shown = invoke("show", "latest~1", "-o", "out", env=WIDE)
        judged = invoke("gate", "latest~1", "--baseline", "odd", "-o", "out", env=WIDE)
        saved = invoke("baseline", "save", "x", "latest~1", "-o", "out", "--reason", "x")

    assert "verify steps of" in shown[1]
    assert judged[0] == 5
    assert "does not know which positions were accepted" in " ".join(judged[1].split())
    assert saved[0] == 2


def test_a_baseline_without_positions_is_not_passed_over(results: Path, tmp_path: Path) -> None:
    """A line whose list of positions was emptied by hand."""
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "out" / "baselines" / "odd.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'"accepted_at":\[[^]]+\]', '"accepted_at":[]', text), encoding="utf-8")

    with scripted(tmp_path):
        status, out, _ = invoke("gate", "latest~1", "--baseline", "odd", "-o", "out", env=WIDE)

    assert status == 5
    assert "the baseline does not know which positions" in " ".join(out.split())


def test_runs_in_every_state_are_shown_by_every_command(results: Path, tmp_path: Path) -> None:
    """Running, failed, partial, empty, of a newer version, of an older one: a status, no traceback.

    A field that only another version knows is named; nothing else changes.
    """
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    run = min((tmp_path / "out" / "runs").iterdir())
    whole = json.loads((run / "run.json").read_text(encoding="utf-8"))
    lines = (run / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    newer = [json.dumps(json.loads(line) | {"surprise": 1}) for line in lines]
    old_config = {name: whole["config"][name] for name in ("suite", "model", "arms")}
    states: dict[str, tuple[dict[str, object], list[str], set[int]]] = {
        "running": ({"status": "running"}, lines[:3], {0, 3, 5}),
        "failed": ({"status": "failed"}, lines[:5], {0, 3, 5}),
        "partial": ({"status": "partial"}, lines[:8], {0, 3, 5}),
        "empty": ({"status": "running"}, [], {5}),
        "newer": ({"surprise": {"deep": []}}, newer, {0, 3, 5}),
        "older": ({"config": old_config, "git": None, "tau": None}, lines, {0, 3, 5}),
        "schema": ({"schema_version": 3}, lines, {2}),
    }
    tried = 0
    for name, (changes, kept, statuses) in states.items():
        (run / "run.json").write_text(json.dumps(whole | changes), encoding="utf-8")
        (run / "requests.jsonl").write_text("".join(f"{line}\n" for line in kept))
        with scripted(tmp_path):
            for words in COMMANDS:
                status, _, err = invoke(*words.replace("RUN", str(run)).split(), "-o", "out")
                assert status in statuses | ({0} if words == "list" else set()), (name, words, err)
                tried += 1
            shown = invoke("show", str(run), "-o", "out")[1]
        assert ("not shown: surprise" in " ".join(shown.split())) == (name == "newer")

    assert tried == 7 * len(COMMANDS)


COMMANDS = (
    *("show RUN", "show RUN --format json", "list", "report RUN --to x.html"),
    *(f"report RUN --format {f} --to x" for f in ("md", "pr", "junit", "json", "csv", "bencher")),
    *("gate RUN --baseline odd", "compare RUN latest", "compare latest RUN", "compare RUN RUN"),
    "explain RUN page1- q1",
)


@pytest.mark.parametrize("name", ["~nobody/x", "x" * 5000, "a\udcff/b"])
@pytest.mark.parametrize("option", ["--model", "--draft-model", "--question-file", "--replay"])
def test_names_that_can_be_no_path_are_refused(results: Path, option: str, name: str) -> None:
    """A home of nobody, a name that is too long, bytes that are no text: status 2."""
    with scripted(results):
        status, out, err = invoke("run", "tiny", "-o", "out", "--progress", "none", option, name)

    assert (status, out) == (2, ""), err
    assert err


def test_a_broken_tokenizer_costs_explain_its_words_only(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are shown as numbers, with the reason, and the status is that of what was shown."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "cake"}}', encoding="utf-8")
    monkeypatch.setattr("eaglebench.bench.explain.local_folder", lambda _name: tmp_path)

    with scripted(results):
        status, out, err = invoke("explain", "latest", "page16", "q1", "-o", "out")

    assert status == 0, err
    assert out
    assert "tokens are shown as numbers" in err
    assert "tokenizer.json" in err
