"""Tables in GitHub's Markdown."""

from collections.abc import Sequence

from tabulate import tabulate

from eaglebench.report.escaping import markdown_text

NOTHING = "none"


ALIGNMENTS = {"l": "left", "r": "right"}


def pipe_table(header: Sequence[str], rows: Sequence[Sequence[str]], alignment: str) -> str:
    """The table; `alignment` has a letter a column: `l` for texts, `r` for numbers."""
    if not rows:
        return NOTHING
    return tabulate(
        [[markdown_text(text) for text in row] for row in rows],
        headers=[markdown_text(text) for text in header],
        tablefmt="pipe",  # tabulate's `github` is the same without the marks that align columns
        disable_numparse=True,  # a question called 007 is no number
        colalign=[ALIGNMENTS[letter] for letter in alignment],
    )
