"""The cells of this project's own gate: each planted fault, in the place of the cache, turns one red."""

from pathlib import Path

import pytest

from tests.stored_runs import invoke

BASELINES = Path(__file__).parents[2] / "results" / "baselines"
GATED = {
    "tiny-float64": ("tiny", "--page-size", "1,16", "--chunked-prefill-size", "-1,16"),
    "tiny-pages-float64": ("tiny-pages",),
    "tiny-lookahead-float64": (
        *("tiny", "--num-steps", "5", "--parallel", "4"),
        *("--chunked-prefill-size", "16"),
    ),
}


@pytest.mark.parametrize(
    ("name", "arms"),
    [
        ("tiny-float64", ("unigram", "kv-reuse", "seam-guess", "seam-last")),
        ("tiny-pages-float64", ("unigram",)),
        ("tiny-lookahead-float64", ("no-lookahead",)),
    ],
)
def test_each_fault_is_red_where_it_bites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arms: tuple[str, ...]
) -> None:
    """Status 3 for a fault, 0 for the cache itself."""
    monkeypatch.chdir(tmp_path)
    options = ("--dtype", "float64", "--progress", "none", "-o", "out", "--arms")
    status, _, err = invoke("run", *GATED[name], *options, ",".join(("radix", *arms, "no-cache")))
    assert status == 0, err

    gate = ("gate", "--baseline", str(BASELINES / f"{name}.jsonl"), "-o", "out")
    assert invoke(*gate)[0] == 0
    for arm in arms:
        assert invoke(*gate, "--as", f"{arm}=radix")[0] == 3, arm
