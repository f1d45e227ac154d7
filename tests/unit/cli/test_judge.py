"""gate, baseline, compare, explain and report on stored runs, without a model."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.bench import measure
from eaglebench.cli.main import main
from eaglebench.report.formats import FORMATS
from eaglebench.store.run_folder import find_run
from tests.fakes import Plant, ScriptedRuntime

TINY = ("run", "tiny", "-o", "out", "--max-new-tokens", "24", "--progress", "none")
FAULT = {"unigram": [Plant(word="keeps")]}


@pytest.fixture(autouse=True)
def _scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded; facts questions meet a planted draft fault in the arm `unigram`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "open_runtime", lambda _choice: ScriptedRuntime(FAULT))
    monkeypatch.setattr(measure, "git_state", lambda _folder: {"sha": "1f2e3d4", "dirty": False})
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("COLUMNS", "140")  # a test runner may set its own


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stdout, result.stderr


def judged(*args: str) -> tuple[int, str, str]:
    """A command over the folder of runs."""
    return invoke(*args, "-o", "out")


def run(*args: str) -> None:
    """A stored run."""
    status, _, err = invoke(*TINY, *args)
    assert status == 0, err


def latest_run() -> Path:
    """The folder of the newest run."""
    return find_run(Path("out"), "latest").path


def save(reason: str = "because") -> None:
    """A run and a baseline of it."""
    run()
    status, _, err = judged("baseline", "save", "tiny", "--reason", reason)
    assert status == 0, err


def test_an_unchanged_tree_passes_every_time() -> None:
    """The exact gate has no false alarms."""
    save()

    for _ in range(3):
        run()
        status, out, err = judged("gate")
        assert status == 0, out + err
        assert "PASS" in out
    assert "baseline tiny, of 1f2e3d4: because" in err


def test_a_planted_fault_exits_with_three_and_names_its_questions() -> None:
    """As the arm radix; as an arm of its own it is no substitute for the one in the baseline."""
    save()
    run("--arms", "unigram,no-cache")

    status, out, _ = judged("gate", "--as", "unigram=radix")
    assert status == 3
    assert "REGRESSED" in out
    assert "questions 4, 6, 10" in " ".join(out.replace("│", " ").split())
    status, out, _ = judged("gate")
    assert status == 5
    assert "REGRESSED" not in out


def test_a_fault_that_is_seen_turns_no_run_red() -> None:
    """Beside arms that are as they were, a planted fault has no part in the status."""
    save()
    run("--arms", "radix,unigram,no-cache")

    status, out, err = judged("gate")
    assert status == 0, out + err
    document = json.loads(judged("report", "--format", "json")[1])
    assert document["judgement"]["verdict"] == "PASS"
    assert {finding["arm"] for finding in document["judgement"]["findings"]} == {"radix"}
    assert "unigram" in document["differences"][1]["arm"]


def test_an_empty_or_foreign_run_exits_with_five() -> None:
    """Never a pass: no folder, no question, another workload, an unfinished run."""
    save()
    run("--max-new-tokens", "12")
    status, out, _ = judged("gate")
    assert status == 5
    assert "max_new_tokens: 12 here, 24 in" in " ".join(out.split())

    run()
    latest = latest_run()
    manifest = json.loads((latest / "run.json").read_text())
    (latest / "run.json").write_text(json.dumps(manifest | {"status": "partial"}))
    assert judged("gate")[0] == 5
    (latest / "requests.jsonl").write_text("")
    assert judged("gate")[0] == 5
    (latest / "run.json").write_text('{"error": "..."}')
    status, _, err = judged("gate", str(latest))
    assert status == 2
    assert "schema version None" in err


def test_a_missing_baseline_is_said_before_anything_is_read() -> None:
    """With status 5 and the nearest names."""
    save()

    status, _, err = judged("gate", "--baseline", "tinny")

    assert status == 5
    assert "did you mean tiny?" in err


def test_a_wrong_rule_is_a_usage_error() -> None:
    """Before the run is read."""
    assert judged("gate", "--fail-on", "al=1%")[0] == 2
    assert judged("gate", "--as", "unigram")[0] == 2


def test_noisy_times_fail_only_when_strict() -> None:
    """One pass is too few to tell."""
    save()
    run()

    assert judged("gate", "--fail-on", "throughput:2%")[0] == 0
    status, out, _ = judged("gate", "--fail-on", "throughput:2%", "--strict")
    assert status == 4
    assert "--passes 8:40" in " ".join(out.split())


def test_ci_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JUnit where asked, the step summary where GitHub says where."""
    save()
    run()
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    assert judged("gate", "--junit", "junit.xml")[0] == 0

    assert "<testsuite" in Path("junit.xml").read_text()
    assert "#questions: 12" in summary.read_text()


def test_github_summary_without_github_is_refused() -> None:
    """Rather than ignored."""
    save()

    status, _, err = judged("gate", "--github-summary")

    assert status == 2
    assert "GITHUB_STEP_SUMMARY is not set" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "needs a reason"),
        (("--reason", "  "), "needs a reason"),
    ],
)
def test_a_baseline_needs_a_reason(options: tuple[str, ...], message: str) -> None:
    """Nothing is written without one."""
    run()

    status, _, err = judged("baseline", "save", "tiny", *options)

    assert status == 2
    assert message in err
    assert not Path("out/baselines/tiny.jsonl").exists()


def test_a_bad_run_never_becomes_a_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dirty code, an unfinished run, a faulty cache arm; the old one is left as it was."""
    save()
    before = Path("out/baselines/tiny.jsonl").read_bytes()
    monkeypatch.setattr(measure, "git_state", lambda _folder: {"sha": "1f2e3d4", "dirty": True})
    run()
    accept = ("baseline", "accept", "tiny", "--reason", "x")
    assert "uncommitted changes" in judged(*accept)[2]
    latest = latest_run()
    manifest = json.loads((latest / "run.json").read_text())
    (latest / "run.json").write_text(json.dumps(manifest | {"status": "failed"}))
    assert "is failed; expected one that is done" in judged(*accept)[2]
    monkeypatch.setattr(
        measure, "open_runtime", lambda _choice: ScriptedRuntime({"radix": FAULT["unigram"]})
    )
    run()
    assert "can't be a baseline" in judged(*accept)[2]

    assert Path("out/baselines/tiny.jsonl").read_bytes() == before
    assert "there is a baseline 'tiny' already" in judged("baseline", "save", "tiny")[2]


def test_accept_shows_what_changes_and_replaces(tmp_path: Path) -> None:
    """Also out of a CI artifact, which holds one run."""
    save()
    run("--max-new-tokens", "12")
    latest = latest_run()
    artifact = tmp_path / "artifact" / "inner"
    shutil.copytree(latest, artifact / latest.name)

    status, out, err = judged(
        "baseline", "accept", "tiny", "--from-ci", str(artifact.parent), "--reason", "shorter"
    )

    assert status == 0, err
    assert "max_new_tokens" in out
    assert "shorter" in judged("baseline", "list")[1]
    assert "no-cache" in judged("baseline", "show", "tiny")[1]
    assert judged("baseline", "diff", "tiny", "latest")[0] == 0
    assert judged("baseline", "rm", "tiny")[0] == 0
    assert "no baselines" in judged("baseline", "list")[1]


def test_compare_passes_equal_runs_and_names_what_differs() -> None:
    """`latest~1` against `latest` by default; a lost arm is not comparable."""
    run()
    run()
    assert judged("compare")[0] == 0

    run("--arms", "unigram,no-cache")
    status, out, _ = judged("compare")
    assert status == 5
    status, out, _ = judged("compare", "--as", "unigram=radix")
    assert status == 3
    assert "draft-state" in out
    document = json.loads(judged("compare", "--as", "unigram=radix", "--format", "json")[1])
    assert document["verdict"] == "REGRESSED"


def test_compare_uses_the_questions_both_have() -> None:
    """And says how many are left out."""
    run()
    run("-n", "3")

    status, out, _ = judged("compare")

    assert status == 0
    assert "3 questions are in both, 9 are left out" in " ".join(out.split())


def test_explain_marks_where_two_arms_part() -> None:
    """With the reason; an identical question says so."""
    run("--arms", "unigram,no-cache")

    status, out, err = judged("explain", "latest", "-", "4")
    assert status == 0, err
    assert "draft-state: parts from no-cache at step" in " ".join(out.split())
    assert "identical to no-cache" in judged("explain", "latest", "page1", "1")[1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("latest", "page7", "1"), "names 0 cells"),
        (("latest", "-", "99"), "no question '99'"),
        (("latest", "-", "1", "--turn", "3"), "has 2 turns"),
        (("latest", "-", "1", "--arm", "x"), "no arm 'x'"),
    ],
)
def test_explain_says_what_there_is(args: tuple[str, ...], message: str) -> None:
    """A wrong cell, question, turn or arm is a usage error."""
    run()

    status, _, err = judged("explain", *args)

    assert status == 2
    assert message in err


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "html"])
def test_reports_are_printed(form: str) -> None:
    """Every text format, on standard output alone."""
    run()

    status, out, err = judged("report", "--format", form)

    assert (status, err) == (0, "")
    assert "no-cache" in out


def test_the_html_report_lands_in_the_run() -> None:
    """And its place is said."""
    run()

    status, out, err = judged("report")

    assert (status, out) == (0, "")
    assert "report.html" in err


def test_judging_loads_no_torch() -> None:
    """compare, gate, baseline, explain, report, show and list run where torch can't be imported."""
    save()
    run("--arms", "unigram,no-cache")
    commands = [
        ["compare"],
        ["gate"],
        ["baseline", "list"],
        ["baseline", "diff", "tiny"],
        ["explain", "latest", "-", "4"],
        ["report", "--format", "md"],
        ["report", "--format", "html"],
        ["show"],
        ["list"],
    ]
    code = (
        "import sys, importlib.abc\n"
        "class Blocker(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'torch', 'transformers'}:\n"
        "            raise AssertionError(f'{name} is imported')\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "from eaglebench.cli.main import main\n"
        "for args in " + repr([[*args, "-o", "out"] for args in commands]) + ":\n"
        "    try:\n        main(args)\n"
        "    except SystemExit as left:\n        assert left.code in (0, None, 3, 5), (args, left)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arms", [(), ("--arms", "radix,unigram,no-cache")])
def test_a_fault_of_showing_changes_no_verdict(
    arms: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a table or a file can't be made there is a warning, and the status is the verdict's."""
    run(*arms)
    expected, *_ = judged("compare", "latest", "latest", *(("--as", "unigram=radix") * bool(arms)))

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no room")

    monkeypatch.setattr("eaglebench.report.terminal.verdicts_table", broken)
    monkeypatch.setattr("eaglebench.report.terminal.runs_pair_table", broken)
    monkeypatch.setattr("eaglebench.report.junit.render_junit", broken)
    status, out, err = judged(
        *("compare", "latest", "latest", *(("--as", "unigram=radix") * bool(arms)))
    )

    assert status == expected
    assert ("REGRESSED" if arms else "PASS") in out
    assert err.count("can't be shown: ZeroDivisionError: no room; the verdict stands") == 2

    judged("baseline", "save", "tiny", "--reason", "because")
    status, out, err = judged("gate", "--junit", "junit.xml")

    assert status == 0
    assert out.startswith("PASS ")
    assert "warning: --junit: can't be shown" in err
