"""What calibration found, as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from eaglebench.stats.noise import WANTED_CHANGE, Noise

SHOWN = 8


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """The noise of one cell at one dtype."""

    dtype: str
    noise: Noise


def render_noise(rows: Sequence[NoiseRow], console: Console) -> None:
    """Print one line a dtype, cell and arm, then the questions that flipped."""
    table = Table(title="A against A", title_justify="left", pad_edge=False)
    for name in ("dtype", "cell", "arm"):
        table.add_column(name, overflow="fold")
    columns = (
        "passes",
        "distinct\nlengths",
        "flipped\nquestions",
        "sigma\na pair",
        "smallest\neffect",
        f"pairs for\n{WANTED_CHANGE:.0%}",
        "minutes",
    )
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.dtype, row.noise.cell_id, row.noise.arm, *_numbers(row.noise))
    console.print(table)
    for row in rows:
        console.print(f"{row.dtype} {row.noise.cell_id} {row.noise.arm}: {_lengths(row.noise)}")


def _numbers(noise: Noise) -> list[str]:
    ratio = noise.ratio
    passes = sum(count for _, count in noise.lengths)
    return [
        str(passes),
        str(len(noise.lengths)),
        str(len(noise.flipped)),
        "-" if ratio is None or ratio.sd is None else f"{ratio.sd:.2%}",
        "-" if ratio is None or ratio.mde is None else f"{ratio.mde:.2%}",
        "-" if noise.pairs_needed is None else str(noise.pairs_needed),
        "-" if noise.minutes_needed is None else f"{noise.minutes_needed:.1f}",
    ]


def _lengths(noise: Noise) -> str:
    shown = ", ".join(f"{length:.4f} ({count} x)" for length, count in noise.lengths[:SHOWN])
    text = f"acceptance length {shown}"
    if len(noise.lengths) > SHOWN:
        text += f" and {len(noise.lengths) - SHOWN} more"
    if noise.flipped:
        text += f"; flipped: {', '.join(noise.flipped[:SHOWN])}"
        text += f" and {len(noise.flipped) - SHOWN} more" * (len(noise.flipped) > SHOWN)
    return text
