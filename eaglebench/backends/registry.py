"""Backends by name, imported when they are first used: judging results loads no torch."""

from importlib import import_module
from typing import Any, cast

from eaglebench.contracts.backend import ModelChoice, Runtime

_LOADERS = {"embedded": "eaglebench.backends.loading:load_embedded"}
DEFAULT_BACKEND = "embedded"


def open_runtime(choice: ModelChoice, backend: str = DEFAULT_BACKEND) -> Runtime:
    """Load models into a runtime.

    Raises:
        UsageError: the models can't be had, don't fit each other, or the backend is unknown.
    """
    module_name, _, function_name = _LOADERS[backend].partition(":")
    load: Any = getattr(import_module(module_name), function_name)
    return cast("Runtime", load(choice))
