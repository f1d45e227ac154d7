"""Names of cells, short enough for a table or a chart."""

from collections.abc import Sequence


def short_names(cells: Sequence[str]) -> tuple[list[str], str]:
    """The parts of the cells' names that differ, and the parts that all share.

    Names that don't have the same number of parts, and a single name, stay as they are.
    """
    parts = [cell.split("-") for cell in cells]
    if len(cells) < 2 or len({len(part) for part in parts}) > 1:
        return list(cells), ""
    is_shared = [len(set(column)) == 1 for column in zip(*parts, strict=True)]
    own = ["-".join(p for p, s in zip(part, is_shared, strict=True) if not s) for part in parts]
    if not all(own):
        return list(cells), ""
    return own, "-".join(p for p, s in zip(parts[0], is_shared, strict=True) if s)
