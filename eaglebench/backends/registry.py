"""Backends by name, imported when they are first used: judging results loads no torch."""

from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from eaglebench.backends.seam import Runtime
from eaglebench.errors import UsageError
from eaglebench.records.models import ModelChoice

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
