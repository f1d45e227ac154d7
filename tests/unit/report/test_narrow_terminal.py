"""Eighty columns: no word is broken, and what was measured says what follows from it."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.terminal import render_judgement, render_noise
from eaglebench.stats.noise import Noise, measure_noise
from eaglebench.store.decode import measured_run
from tests.fakes import ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talks

WIDTH = 80


def make_noise(root: Path, passes: int = 8) -> list[Noise]:
    """Radix beside itself in two cells, each pass as fast as the others but for a bit."""
    folder = make_folder(root)
    cells = [make_cell(), make_cell(page_size=16)]
    arms = ("radix", "radix:again")
    session = make_session(
        ScriptedRuntime(), folder, make_talks(2), cells=cells, arms=arms, passes=str(passes)
    )
    session.run()
    return measure_noise(measured_run(folder))


def shown(found: list[tuple[str, Noise]]) -> str:
    """What a narrow terminal prints."""
    stream = StringIO()
    render_noise(found, Console(file=stream, width=WIDTH))
    return stream.getvalue()


def test_the_last_line_of_a_gate_breaks_between_words() -> None:
    """The verdict in front counts when the rest is wrapped."""
    names = [f"question-{number}" for number in range(3)]
    finding = Finding(
        cell_id="page1", arm="radix", metric="al", verdict="PASS", reason="same", questions=()
    )
    stream = StringIO()
    candidate, baseline = "20261201T065410Z-tiny-2ac8a2", "a-baseline-with-a-name-of-some-length"
    render_judgement(
        Judgement(candidate=candidate, baseline=baseline, findings=(finding,) * len(names)),
        Console(file=stream, width=WIDTH),
    )
    last = stream.getvalue().splitlines()[-2:]

    assert " ".join(line.strip() for line in last) == (
        f"PASS {candidate} against {baseline}: 3 PASS"
    )
    assert all(len(line) <= WIDTH for line in last)


def test_calibration_has_a_legend_and_an_advice(tmp_path: Path) -> None:
    """Cells go by what varies, in at most two lines; each says which passes a gate needs."""
    first, second = make_noise(tmp_path)
    text = shown([("float32", first), ("float32", replace(second, pairs_needed=55))])
    told = " ".join(text.split())

    assert max(map(len, text.splitlines())) <= WIDTH
    assert "page1: acceptance length" in told
    assert "page16: acceptance length" in told
    assert "a gate of throughput:2% needs --passes 8 in the run and in its baseline" in told
    assert "a gate of throughput:2% needs --passes 55 in the run and in its baseline" in told
    assert "sigma = scatter of a pass against its twin" in told
    assert "baseline save --runs 10" in told
    for heading in ("passes", "lengths", "flips", "sigma", "smallest", "effect", "minutes"):
        assert f" {heading} " in text or f"┃{heading} " in text or f" {heading}┃" in text


def test_too_few_passes_give_no_advice(tmp_path: Path) -> None:
    """Nothing is made up from one pass."""
    first, _ = make_noise(tmp_path, passes=1)

    assert "too few passes to say" in " ".join(shown([("float32", first)]).split())
