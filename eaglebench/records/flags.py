"""How an option's name is typed, which name a flag stands for, and where a command looks for runs."""

import shlex
from pathlib import Path

DEFAULT_OUTPUT = "results"
"""Where runs and baselines are when nobody says anything."""


def flag_of(name: str) -> str:
    """`max_new_tokens` as it is typed: `--max-new-tokens`."""
    return f"--{name.replace('_', '-')}"


def name_of(flag: str) -> str:
    """`--max-new-tokens` as it is named: `max_new_tokens`."""
    return flag.removeprefix("--").replace("-", "_")


def in_folder(output_dir: Path | str) -> str:
    """What a command that is to find the same runs needs behind it; empty for the default folder."""
    folder = str(output_dir)
    return "" if folder == DEFAULT_OUTPUT else f" -o {shlex.quote(folder)}"
