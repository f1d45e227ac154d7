"""Names of series that do not overwrite each other."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglebench.report.bencher import render_bencher
from eaglebench.report.csv_table import render_csv
from eaglebench.report.document import ReportDocument
from eaglebench.report.github_benchmark import render_github_benchmark
from eaglebench.report.run_key import series_name
from tests.unit.report.toy_documents import make_document

MODELS = {
    "target_id": "tiny",
    "draft_id": "tiny-eagle3",
    "dtype": "float32",
    "device": "cpu",
    "attention_backend": "loop",
    "warnings": (),
}


def document_of(root: Path, **models: Any) -> ReportDocument:
    """A toy run of these models."""
    document = make_document(root)
    return replace(document, run=replace(document.run, models={**MODELS, **models}))


def names(document: ReportDocument) -> set[str]:
    """All keys of both formats of series."""
    listed = json.loads(render_github_benchmark(document))
    return {*json.loads(render_bencher(document)), *(entry["name"] for entry in listed)}


def test_a_series_names_suite_models_dtype_and_backend(tmp_path: Path) -> None:
    """In this order, in front of cell and arm."""
    document = document_of(tmp_path)

    assert series_name(document.run) == "toy/tiny/tiny-eagle3/float32/cpu/loop"
    assert all(name.startswith("toy/tiny/tiny-eagle3/float32/cpu/loop") for name in names(document))


@pytest.mark.parametrize(
    "other",
    [
        {"target_id": "smollm2-135m"},
        {"draft_id": "another-head"},
        {"draft_id": None},
        {"dtype": "bfloat16"},
        {"device": "cuda:0"},
        {"attention_backend": "padded"},
    ],
)
def test_jobs_of_a_matrix_share_no_name(tmp_path: Path, other: dict[str, Any]) -> None:
    """One fact that differs is enough, in every format for other tools."""
    one, two = document_of(tmp_path / "one"), document_of(tmp_path / "two", **other)

    assert names(one)
    assert not names(one) & names(two)
    assert render_csv(one).splitlines()[1:] != render_csv(two).splitlines()[1:]


def test_a_model_given_by_path_goes_by_its_folder(tmp_path: Path) -> None:
    """A series does not break because a checkout lies elsewhere; a Hub id keeps its owner."""
    here, there = (
        document_of(tmp_path / name, target_id=f"/home/{name}/models/llama", draft_id="org/head")
        for name in ("a", "b")
    )

    assert series_name(here.run) == series_name(there.run) == "toy/llama/org/head/float32/cpu/loop"
