"""What is pasted under a pull request."""

import re
from dataclasses import replace
from pathlib import Path

from eaglebench.records.faults import FAULTS
from eaglebench.records.verdict import Finding
from eaglebench.report.pull_request import render_pull_request
from tests.fakes import Plant
from tests.sessions import make_talk
from tests.unit.report.toy_documents import (
    CELL,
    ODD_NAME,
    in_cells,
    make_document,
    with_findings,
    with_ratio,
    with_rows,
    without_speed,
)

PLAIN = """\
**PASS** no baseline, arms and cells against each other: radix = no-cache - suite toy, target toy, float32, cell page1-chunkoff-topk1-steps2-draft3, run 20261130T021300Z-toy-suite-de7d77

```
radix     #questions: 4, Throughput: 84.00 token/s, Acceptance length: 2.43
no-cache  #questions: 4, Throughput: 84.00 token/s, Acceptance length: 2.43
```

| arm      |   acceptance length |   length against no-cache |   throughput against no-cache | verdict   | why                                                    |
|:---------|--------------------:|--------------------------:|------------------------------:|:----------|:-------------------------------------------------------|
| radix    |               2.333 |                    +0.00% |    +2.00% +- 1.00% (8 passes) | PASS      | 7 identical, 0 near-tie, 0 draft-state, 0 target-state |
| no-cache |               2.333 |                         - |                             - | -         | -                                                      |

- radix against no-cache: throughput +0.0% = acceptance +0.0% x step rate +0.0% x decode share +0.0%

- note: a remark

environment: CPU Toy 3000, device cpu, torch 2.11.0, dtype float32, threads 2, commit n/a

acceptance length = tokens delivered by verify steps / verify steps (prefill's token not counted); `Acceptance length` of the `#questions` lines = output tokens / verify steps, as SGLang's `bench_sglang_eagle.py` prints it
"""


def test_whole_text_is_this(tmp_path: Path) -> None:
    """Nothing more than a reviewer reads, in this order."""
    document = with_ratio(make_document(tmp_path, notes=["a remark"]), 1.02)

    assert render_pull_request(document) == PLAIN


def test_first_line_says_verdict_and_what_was_run(tmp_path: Path) -> None:
    """What was judged by what, suite, target, dtype, and the cell if there is only one."""
    line = render_pull_request(make_document(tmp_path)).splitlines()[0]

    assert line.startswith(
        "**PASS** no baseline, arms and cells against each other: radix = no-cache - "
    )
    assert f"suite toy, target toy, float32, cell {CELL}, run " in line


def test_fenced_block_holds_the_known_lines_only(tmp_path: Path) -> None:
    """One line an arm, as SGLang's script prints it."""
    block = render_pull_request(make_document(tmp_path)).split("```")[1].strip("\n")

    assert len(block.splitlines()) == 2
    for line in block.splitlines():
        assert re.fullmatch(
            r"\S+ +#questions: 4, Throughput: \d+\.\d\d token/s, Acceptance length: \d\.\d\d", line
        )


def test_ratio_has_its_interval(tmp_path: Path) -> None:
    """Over eight passes there is one; over a single pass the table says that there is none."""
    document = make_document(tmp_path)

    assert "~+0.00% (1 pass)" in render_pull_request(document)
    assert "+2.00% +- 1.00% (8 passes)" in render_pull_request(with_ratio(document, 1.02))


def test_split_is_a_sentence(tmp_path: Path) -> None:
    """Three factors a cell and arm; none where there were no times."""
    document = make_document(tmp_path)
    sentence = re.compile(
        r"^- radix against no-cache: throughput ~\+0\.0% = acceptance \+0\.0% x step rate ~\+0\.0% "
        r"x decode share ~\+0\.0% \(1 pass\)$",
        re.MULTILINE,
    )

    assert sentence.search(render_pull_request(document))
    assert " x step rate " not in render_pull_request(without_speed(document))


def test_fault_arm_shows_what_it_lost(tmp_path: Path) -> None:
    """Classes of its turns, and the p-value against the cache without the fault."""
    document = make_document(
        tmp_path, plants={"unigram": [Plant(word="item")]}, arms=("radix", "unigram", "no-cache")
    )
    text = render_pull_request(document)

    assert text.startswith("**REGRESSED** no baseline, arms and cells against each other: unigram")
    line = next(line for line in text.splitlines() if line.startswith("| unigram"))
    assert "| REGRESSED |" in line
    assert "4 identical, 0 near-tie, 3 draft-state, 0 target-state" in line
    assert re.search(r"against radix -\d\.\d\d%, p\(shorter\) 0\.\d{4}", line)
    assert f"- REGRESSED {CELL} unigram" in text
    assert "questions q0, q1, q2" in text


def test_environment_and_lengths_are_explained(tmp_path: Path) -> None:
    """One line each at the end; what is not known says so."""
    *_, environment, _, lengths = render_pull_request(make_document(tmp_path)).splitlines()

    assert environment == (
        "environment: CPU Toy 3000, device cpu, torch 2.11.0, dtype float32, threads 2, commit n/a"
    )
    assert "acceptance length = tokens delivered by verify steps / verify steps" in lengths
    assert "`Acceptance length`" in lengths


def test_commit_is_named_with_its_changes(tmp_path: Path) -> None:
    """Twelve digits, and a mark for what was not committed."""
    document = make_document(tmp_path)
    run = replace(document.run, git={"sha": "0123456789abcdef", "dirty": True})

    assert "commit 0123456789ab-dirty" in render_pull_request(replace(document, run=run))


def test_odd_names_break_no_table_and_no_fence(tmp_path: Path) -> None:
    """Pipes are escaped, line ends kept out, and the fence is longer than what it holds."""
    document = in_cells(make_document(tmp_path), "a|b\n```", "c")
    lines = render_pull_request(document).splitlines()

    assert lines.count("````") == 2
    assert any(line.startswith("a|b ``` radix     #questions: 4") for line in lines)
    assert any(line.startswith("| a\\|b<br>\\`\\`\\` | ") for line in lines)
    widths = [line.replace("\\|", "").count("|") for line in lines if line.startswith("| ")]
    assert widths[:3] == [4, 4, 4]


def test_a_matrix_is_one_table_and_the_rest_is_folded(tmp_path: Path) -> None:
    """Cells down, arms across, named by what varies; a run of 4 x 7 stays under 6 kB."""
    arms = ("radix", "force-miss", "no-cache", *FAULTS)
    made = make_document(tmp_path, plants={"unigram": [Plant(word="item")]}, arms=arms)
    tail = "topk1-steps2-draft3"
    cells = [f"page{page}-chunk{chunk}-{tail}" for page in (1, 16) for chunk in ("off", "16")]
    text = render_pull_request(in_cells(made, *cells))
    matrix = [line for line in text.splitlines() if line.startswith("| page")][:4]

    assert len(text.encode()) < 6000
    assert f"| cell | {' | '.join(arms)} |" in text
    assert [line.split(" | ")[0] for line in matrix] == [
        *("| page1-chunkoff", "| page1-chunk16", "| page16-chunkoff", "| page16-chunk16"),
    ]
    assert text.count("<details>") == text.count("</details>") > 1
    assert "<summary>What known faults cost" in text


def test_odd_question_is_named_in_a_finding(tmp_path: Path) -> None:
    """A tag is text, and what can't be shown is a replacement character."""
    plants = {"radix": [Plant(word="odd")]}
    talks = [make_talk(ODD_NAME, "an odd thing"), make_talk("plain", "a thing")]
    text = render_pull_request(make_document(tmp_path, plants=plants, talks=talks))

    assert "questions a\\|b<br>&lt;x> \\`ü\\` \ufffd\\*" in text


def test_missing_speed_is_said(tmp_path: Path) -> None:
    """A dash, in the line as in the table."""
    text = render_pull_request(without_speed(make_document(tmp_path)))

    assert "Throughput: - token/s" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| radix")]
    assert [cell.strip() for cell in line.split("|")][4] == "-"


def test_many_cells_fit_a_comment(tmp_path: Path) -> None:
    """Tables of the heaviest verdicts stay, and what is left out is counted."""
    cells = [f"page{number}-chunk512-topk1-steps2-draft3" for number in range(60)]
    document = with_ratio(in_cells(make_document(tmp_path), *cells), 1.02)
    findings = list(document.judgement.findings)
    findings[-1] = replace(findings[-1], verdict="REGRESSED", reason="worse")
    text = render_pull_request(with_findings(document, *findings))

    assert len(text) < 6000
    assert "| page59 |" in text
    assert sum(line.startswith("| page") for line in text.split("<details>")[0].splitlines()) == 12
    assert "48 more cells, with no heavier verdict" in text


def test_findings_of_a_baseline_are_heaviest_first_and_cut(tmp_path: Path) -> None:
    """A cell that is missing has no row, but it is named."""
    many = [
        Finding(cell_id="gone", arm=f"arm{n}", metric="al", verdict="INCONCLUSIVE", reason="why")
        for n in range(12)
    ]
    worst = Finding(cell_id="*", arm="*", metric="*", verdict="FAILED", reason="nothing ran")
    text = render_pull_request(with_findings(make_document(tmp_path), *many, worst))

    bullets = [line for line in text.splitlines() if "gone" in line or "nothing ran" in line]
    assert bullets[0] == "- FAILED \\* \\* \\*: nothing ran"
    assert len(bullets) == 10
    assert "- and 3 more" in text


def test_nothing_judged_is_no_pass(tmp_path: Path) -> None:
    """Neither without findings nor without rows."""
    text = render_pull_request(with_rows(with_findings(make_document(tmp_path)), []))

    assert text.startswith("**NOT_COMPARABLE** against last-release: ")
