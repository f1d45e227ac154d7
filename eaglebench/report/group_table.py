"""Acceptance by category and by turn, in one table."""

from functools import partial

from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.groups import Group
from eaglebench.stats.sweep import main_arm

GROUPS = "groups"


def group_table(document: ReportDocument) -> Table | None:
    """Arms across; of several cells the cells across, in the arm that stands for them.

    None where all questions are of one category and of one turn.
    """
    if not document.groups:
        return None
    names = CellNames(row.cell_id for row in document.rows)
    arms = list(dict.fromkeys(row.arm for row in document.rows))
    arm = main_arm(arms)
    if len(names.cells) > 1:
        heads = {names[cell_id]: (cell_id, arm) for cell_id in names.cells}
        where = f" ({', '.join(filter(None, (arm, names.shared)))})"
    else:
        heads = {each: (names.cells[0], each) for each in arms}
        where = ""
    columns = (
        Column("of", lambda group: f"{group.kind} {group.name}"),
        Column("turns", "num_turns", "count"),
        *(Column(head, partial(_length, place), "ratio") for head, place in heads.items()),
    )
    title = f"Acceptance length by category and turn{where}"
    return make_table(columns, document.groups, name=GROUPS, title=title)


def _length(place: tuple[str, str], group: Group) -> float | None:
    counts = group.counts.get(place)
    return counts.acceptance_length if counts else None
