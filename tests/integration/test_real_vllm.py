"""vLLM itself: accepts, step by step, what the embedded engine accepts; its chunk seams are seen.

Needs an environment with vLLM (docs/engines.md) and the downloaded target:

    EAGLEBENCH_VLLM_PYTHON=~/vllm/bin/python python -m pytest -m slow tests/integration/test_real_vllm.py
"""

import json
import os
from pathlib import Path

import pytest

from eaglebench.bench.stored_run import list_runs
from tests.stored_runs import invoke

PYTHON = os.environ.get("EAGLEBENCH_VLLM_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(PYTHON is None, reason="EAGLEBENCH_VLLM_PYTHON names no python with vLLM"),
]
RUN = (
    "run",
    "mtbench",
    "-o",
    "out",
    "-n",
    "3",
    "--max-new-tokens",
    "48",
    "--context-length",
    "2048",
)
BOTH = ("--backend", "embedded,vllm", "--page-size", "32", "--progress", "none")


def test_both_engines_accept_the_same_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turn by turn in every arm; and where vLLM 0.32 computes prompts in chunks, not."""
    monkeypatch.chdir(tmp_path)
    chunks = ("--chunked-prefill-size", "-1,32")
    status, _, err = invoke(*RUN, *BOTH, *chunks, "--engine-python", str(PYTHON))
    assert status == 0, err
    names = [run.run_id for run in list_runs("out")]

    _, text, _ = invoke("compare", *names, "-o", "out", "--format", "json")
    cells = {(each["cell_id"], each["arm"]): each for each in json.loads(text)["cells"]}
    whole = [each for (cell, _), each in cells.items() if "chunkoff" in cell]
    assert len(whole) == 2
    assert all(each["turns_by_class"] == {"identical": 6} for each in whole)
