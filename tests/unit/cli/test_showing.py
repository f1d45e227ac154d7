"""What was measured can be shown in any encoding, and a fault of showing changes no status."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eaglebench.report.formats import FORMATS
from tests.stored_runs import ODD, invoke, make_results, scripted

ENCODINGS = ("ascii", "cp1252")
REGRESSION, MISSING = 3, 5
COMMANDS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("show", "latest~1")),
    (0, ("show", "--format", "json")),
    (0, ("list",)),
    (0, ("compare", "latest~1", "latest~1")),
    (0, ("compare", "latest~1", "latest~1", "--format", "json")),
    (0, ("baseline", "list")),
    (0, ("baseline", "show", "odd")),
    (MISSING, ("baseline", "diff", "odd")),
    (REGRESSION, ("gate", "--baseline", "odd", "--as", "unigram=radix")),
    (0, ("explain", "latest", "page1-", ODD)),
    *((0, ("report", "--format", form)) for form in FORMATS),
    *((0, ("report", "--format", form, "--to", f"new/{ODD.replace('/', '')}")) for form in FORMATS),
    (MISSING, ("gate", "--baseline", f"none {ODD}")),
    (2, ("show", f"none {ODD}")),
    (2, ("show", "none \udcff")),
    (2, ("gate", "--fail-on", "al\udcff")),
    (2, ("gate", "--as", "\udcff=radix", "--baseline", "odd")),
    (2, (f"none {ODD}",)),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `out`."""
    folder = tmp_path_factory.mktemp("showing")
    make_results(folder)
    return folder


def python(
    results: Path, command: str, *, redirection: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """`eaglebench` in a process of its own, behind a shell's redirection."""
    line = f"{sys.executable} -m eaglebench {command} -o out {redirection}"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        encoding=env.get("PYTHONIOENCODING", "utf-8"),
        check=False,
        cwd=results,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[3]), **env},
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_command_ends_as_it_would_in_utf_8(results: Path, encoding: str) -> None:
    """Names, reasons and questions that an encoding lacks are escaped, in every format."""
    shown = 0
    with scripted(results):
        for expected, args in COMMANDS:
            is_global = len(args) == 1 and args[0] != "list"
            status, out, err = invoke(
                *args, *(() if is_global else ("-o", "out")), charset=encoding
            )

            assert status == expected, (args, out, err)
            shown += len(out)
        (results / "new" / ODD.replace("/", "")).unlink()

    assert shown > 10_000


def test_names_are_no_markup(results: Path) -> None:
    """Brackets and colons in what people typed are shown as they are."""
    with scripted(results):
        _, listed, _ = invoke("baseline", "list", "-o", "out", env={"COLUMNS": "240"})
        _, shown, _ = invoke("gate", "--baseline", "odd", "-o", "out", "--as", "unigram=radix")

    assert f"because {ODD}" in listed
    assert "[/bold] :smile:" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("redirection", "status"),
    [
        ("> /dev/null", REGRESSION),
        (">&-", REGRESSION),
        ("2>&-", REGRESSION),
        (">&- 2>&-", REGRESSION),
        ("> /dev/full", REGRESSION),
        ("| true", REGRESSION),
        ("2>&1 | true", REGRESSION),
    ],
)
def test_a_verdict_stands_whoever_reads_it(results: Path, redirection: str, status: int) -> None:
    """Closed, full and left streams don't change the status of the gate, and leave no traceback."""
    done = python(
        results, "gate --baseline odd --as unigram=radix", redirection=redirection, LC_ALL="C"
    )

    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_what_could_not_be_shown_at_all_is_said(results: Path) -> None:
    """A command without a verdict whose output meets a full disk has failed."""
    done = python(results, "show latest", redirection="> /dev/full")

    assert done.returncode == 1
    assert "standard output can't be written: No space left on device" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_process_of_its_own_escapes(results: Path, encoding: str) -> None:
    """PYTHONIOENCODING decides what is escaped, not whether the command ends well."""
    done = python(results, "list", PYTHONIOENCODING=encoding)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_folder_under_a_name_that_is_no_text_is_shown(results: Path) -> None:
    """Bytes of a path that are not UTF-8 are escaped wherever they are shown."""
    copied = results / "runs \udcff"
    shutil.copytree(results / "out" / "runs", copied)
    run = str(min(copied.iterdir()))

    with scripted(results):
        for args in (("show", run), ("compare", run, run), ("report", run), ("report", run, *MD)):
            status, out, err = invoke(*args)
            assert status == 0, (args, out, err)
    shutil.rmtree(copied)


MD = ("--format", "md")


@pytest.mark.parametrize("place", ["missing/summary.md", ".", "out/odd\udcff/summary", ""])
def test_a_step_summary_changes_no_status(results: Path, place: str) -> None:
    """Where GITHUB_STEP_SUMMARY can't be written there is a warning and the verdict's status."""
    gate = ("gate", "--baseline", "odd", "-o", "out")
    with scripted(results) as patch:
        patch.setenv("GITHUB_STEP_SUMMARY", place)
        regressed = invoke(*gate, "--as", "unigram=radix")
        passed = invoke("gate", "latest~1", "--baseline", "odd", "-o", "out")

    assert [regressed[0], passed[0]] == [REGRESSION, 0]
    assert ("warning: GITHUB_STEP_SUMMARY" in regressed[2]) == bool(place)


def test_side_files_make_their_folders_or_warn(results: Path) -> None:
    """`--junit` into a new folder is written; into a file's place it is a warning."""
    gate = ("gate", "--baseline", "odd", "-o", "out", "--as", "unigram=radix", "--junit")
    with scripted(results):
        made = invoke(*gate, "a/b/junit.xml")
        refused = invoke(*gate, "questions.jsonl/junit.xml")

    assert [made[0], refused[0]] == [REGRESSION, REGRESSION]
    assert "<testsuites" in (results / "a" / "b" / "junit.xml").read_text(encoding="utf-8")
    assert "warning: --junit" in refused[2]


def test_a_summary_that_nobody_asked_github_for_is_refused_first(results: Path) -> None:
    """`--github-summary` without GITHUB_STEP_SUMMARY is a wrong request, found before judging."""
    with scripted(results):
        status, out, err = invoke("gate", "--baseline", "odd", "-o", "out", "--github-summary")

    assert (status, out) == (2, "")
    assert "GITHUB_STEP_SUMMARY is not set" in err


def test_a_folder_that_takes_no_files_is_found_before_the_model(results: Path) -> None:
    """Nothing is loaded for results that could not be kept."""

    def open_runtime(_choice: object) -> None:
        raise AssertionError("the model was loaded")

    with scripted(results) as patch:
        patch.setattr("eaglebench.bench.measure.open_runtime", open_runtime)
        status, out, err = invoke("run", "tiny", "-o", "questions.jsonl/out")

    assert (status, out) == (1, "")
    assert "questions.jsonl/out can't be made" in err
    assert "--output-dir" in err
