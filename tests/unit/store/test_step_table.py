"""The table of verify steps, read back."""

import subprocess
import sys
from pathlib import Path

from tests.stored_runs import make_results

READ = """
import sys
from pathlib import Path

import psutil
import pyarrow.parquet

from eaglebench.store.step_table import read_step_table

before = psutil.Process().num_threads()
steps, unknown = read_step_table(Path(sys.argv[1]))
assert steps and not unknown
print(psutil.Process().num_threads() - before)
"""


def test_reading_starts_no_thread(tmp_path: Path) -> None:
    """One that outlived the interpreter ended a command that had shown everything in an abort."""
    make_results(tmp_path)
    table = min((tmp_path / "out" / "runs").glob("*/steps.parquet"))

    done = subprocess.run(
        [sys.executable, "-c", READ, str(table)], capture_output=True, text=True, check=False
    )

    assert (done.stdout.strip(), done.returncode) == ("0", 0), done.stderr
