"""The line people paste into pull requests, in the words of `bench_sglang_eagle.py`."""

from collections.abc import Sequence

from eaglebench.report.rows import Row, questions_answered

NOTHING = "-"


def paste_lines(rows: Sequence[Row]) -> list[str]:
    """One line a cell and arm; acceptance length is SGLang's (output tokens / verify steps)."""
    several = len({row.cell_id for row in rows}) > 1
    width = max((len(_name(row, several=several)) for row in rows), default=0)
    return [f"{_name(row, several=several):<{width}}  {paste_line(row)}" for row in rows]


def paste_line(row: Row) -> str:
    """`#questions: 10, Throughput: 269.86 token/s, Acceptance length: 2.39`.

    Where turns failed it says so: the numbers are those of the others.
    """
    speed = f"{row.speed.tokens_per_s:.2f}" if row.speed else NOTHING
    length = row.counts.al_sglang
    shown = NOTHING if length is None else f"{length:.2f}"
    asked = questions_answered(row)
    return f"#questions: {asked}, Throughput: {speed} token/s, Acceptance length: {shown}"


def _name(row: Row, *, several: bool) -> str:
    return f"{row.cell_id} {row.arm}" if several else row.arm
