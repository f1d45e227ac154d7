"""What a run measured, in the words that keep its numbers apart from those of another setting.

Series of other tools are found by name: two jobs of a matrix that share one overwrite each other.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from eaglebench.records.measured import MeasuredRun

NO_HEAD = "no head"
_PATHS = ("/", ".", "~", "\\")


def run_key(run: MeasuredRun) -> dict[str, str]:
    """Suite, models and where they ran, by name; empty where it was not recorded."""
    models: Mapping[str, Any] = run.models
    head = models.get("draft_id", "")
    return {
        "suite": str(run.suite["name"]),
        "model": _name(str(models["target_id"])),
        "draft_model": NO_HEAD if head is None else _name(str(head)),
        "dtype": str(models["dtype"]),
        "device": str(models.get("device") or ""),
        "attention_backend": str(models.get("attention_backend") or ""),
    }


def series_name(run: MeasuredRun) -> str:
    """The same as the beginning of a name."""
    return "/".join(text for text in run_key(run).values() if text)


def _name(model: str) -> str:
    """A folder's own name where a model was given by path: a checkout may lie anywhere."""
    return PurePath(model).name or model if model.startswith(_PATHS) else model
