"""One writer a run folder; whoever is killed leaves no lock."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eaglebench.errors import UsageError
from eaglebench.store.run_lock import is_written, writing
from tests.sessions import make_folder

HOLD = """
import sys
from pathlib import Path
from eaglebench.store.run_lock import writing
with writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the folder until it is told to end."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    """By process, host and time; once it has ended, the folder is free."""
    with held_elsewhere(tmp_path) as process:
        assert is_written(tmp_path)
        named = rf"process {process.pid} on .+ since 20"
        with pytest.raises(UsageError, match=named), writing(tmp_path):
            pytest.fail("there are two writers")
        process.communicate("")

    assert not is_written(tmp_path)
    with writing(tmp_path):
        assert is_written(tmp_path)
    assert not (tmp_path / "writer.json").exists()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    """The system takes it back; its run is shown as interrupted, not as running."""
    folder = make_folder(tmp_path)
    with held_elsewhere(folder.path) as process:
        assert folder.manifest()["status"] == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()

        assert folder.manifest()["status"] == "interrupted"
        with writing(folder.path):
            assert folder.manifest()["status"] == "running"


def test_a_reader_leaves_nothing_behind(tmp_path: Path) -> None:
    """Looking whether somebody writes makes no file."""
    assert not is_written(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_needs_no_lock(tmp_path: Path) -> None:
    """Its status is what it says."""
    folder = make_folder(tmp_path)
    folder.set_status("done")

    assert folder.manifest()["status"] == "done"
