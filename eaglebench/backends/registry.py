"""Backends by name, imported when they are first used: judging results loads no torch."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from eaglebench.backends.seam import Runtime
from eaglebench.errors import UsageError
from eaglebench.progress import Progress
from eaglebench.records.models import ModelChoice
from eaglebench.training.head_report import HeadReport
from eaglebench.training.recipe import (
    TrainingFiles,
    TrainingMachine,
    TrainingRecipe,
    TrainingReport,
)

_LOADERS = {"embedded": "eaglebench.backends.loading:load_embedded"}
DEFAULT_BACKEND = "embedded"


def open_runtime(choice: ModelChoice, backend: str = DEFAULT_BACKEND) -> Runtime:
    """Load models into a runtime.

    Raises:
        UsageError: the models can't be had, don't fit each other, or the backend is unknown.
    """
    if backend not in _LOADERS:
        known = ", ".join(sorted(_LOADERS))
        raise UsageError(f"unknown backend {backend!r}", hint=f"known: {known}")
    module_name, _, function_name = _LOADERS[backend].partition(":")
    load: Any = getattr(import_module(module_name), function_name)
    return cast("Runtime", load(choice))


def open_profiler(path: Path) -> AbstractContextManager[None]:
    """Profile what runs inside the context into a Chrome trace at `path`."""
    profile_to: Any = import_module("eaglebench.backends.profiling").profile_to
    return cast("AbstractContextManager[None]", profile_to(path))


def inspect_head(
    folder: Path,
    target: Path | None,
    aux_layer_ids: Sequence[int] | None = None,
    draft_config: Mapping[str, Any] | None = None,
) -> HeadReport:
    """What lies in a head's folder, held against a target where one is given.

    Raises:
        UsageError: it is no head, or does not fit.
    """
    inspect: Any = import_module("eaglebench.backends.heads").inspect_head
    return cast("HeadReport", inspect(folder, target, aux_layer_ids, draft_config))


def convert_head(
    folder: Path,
    out: Path,
    form: str,
    target: Path | None,
    target_name: str | None,
    aux_layer_ids: Sequence[int] | None = None,
    draft_config: Mapping[str, Any] | None = None,
) -> HeadReport:
    """Write a head in another format into `out`, and report what lies there.

    Raises:
        UsageError: it is no head, does not fit the target, or the format can't say what it is.
        StorageError: it can't be written.
    """
    convert: Any = import_module("eaglebench.backends.heads").convert_head
    report = convert(folder, out, form, target, target_name, aux_layer_ids, draft_config)
    return cast("HeadReport", report)


def train_head(
    files: TrainingFiles,
    recipe: TrainingRecipe,
    machine: TrainingMachine,
    listener: Progress,
) -> TrainingReport:
    """Make a head for a target, or go on where an earlier call was stopped.

    Raises:
        UsageError: something given does not fit the target or what was begun.
        StorageError: the folder can't be written.
    """
    maker: Any = import_module("eaglebench.training.make_head").HeadMaker
    return cast("TrainingReport", maker(files, recipe, machine, listener).make())
