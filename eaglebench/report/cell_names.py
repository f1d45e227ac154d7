"""Cells named by what varies: the parts of a cell's name that not all cells share."""

from collections.abc import Iterable, Sequence

DEFAULT = "default"
"""A cell that has no part of its own: those of others stand only where a knob is unusual."""


def short_names(cells: Sequence[str]) -> tuple[list[str], str]:
    """The parts of the cells' names that differ, and the parts that all share.

    Names stay whole where that would leave two of them alike, or nothing is shared.
    """
    if len(set(cells)) < 2:
        return list(cells), ""
    parts = [cell.split("-") for cell in cells]
    common = set.intersection(*map(set, parts))
    own = ["-".join(part for part in name if part not in common) or DEFAULT for name in parts]
    if len(set(own)) < len(set(cells)):
        return list(cells), ""
    return own, "-".join(part for part in parts[0] if part in common)


class CellNames:
    """Short names by cell; a cell that is not among them keeps its own."""

    def __init__(self, cells: Iterable[str]) -> None:
        self.cells = tuple(dict.fromkeys(cells))
        names, self.shared = short_names(self.cells)
        self._short = dict(zip(self.cells, names, strict=True))

    @property
    def title(self) -> str:
        """What stands over a table of them: what all share, of a single cell its whole name."""
        return self.cells[0] if len(self.cells) == 1 else self.shared

    def __getitem__(self, cell_id: str) -> str:
        """What it is called beside the others."""
        return self._short.get(cell_id, cell_id)
