"""Acceptance by category and by turn, in one table."""

from functools import partial

from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.groups import Group
from eaglebench.stats.sweep import main_arm

GROUPS = "groups"
MOST_CELLS = 4
"""More of them stand down, and the groups across."""
TITLE = "Acceptance length by category and turn"


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
    if len(names.cells) > MOST_CELLS:
        return _cells_down(document, names, arm, where)
    columns = (
        Column("of", lambda group: f"{group.kind} {group.name}"),
        Column("turns", "num_turns", "count"),
        *(Column(head, partial(_length, place), "ratio") for head, place in heads.items()),
    )
    title = f"{TITLE}{where}"
    return make_table(columns, document.groups, name=GROUPS, title=title)


def _cells_down(document: ReportDocument, names: CellNames, arm: str, where: str) -> Table:
    columns = (
        Column("cell", lambda cell_id: names[cell_id]),
        *(
            Column(f"{group.kind} {group.name}", partial(_in_cell, group, arm), "ratio")
            for group in document.groups
        ),
    )
    return make_table(columns, names.cells, name=GROUPS, title=f"{TITLE}{where}")


def _in_cell(group: Group, arm: str, cell_id: str) -> float | None:
    return _length((cell_id, arm), group)


def _length(place: tuple[str, str], group: Group) -> float | None:
    counts = group.counts.get(place)
    return counts.acceptance_length if counts else None
