"""Engines by name, imported when they are first used: judging results loads no torch.

An engine is a line here and a file of its own; `docs/engines.md` says what belongs in it.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from eaglebench.backends.abilities import Abilities
from eaglebench.backends.seam import Runtime
from eaglebench.backends.vllm_abilities import VLLM
from eaglebench.errors import UsageError
from eaglebench.records.models import DEFAULT_BACKEND, ModelChoice


@dataclass(frozen=True, slots=True)
class Engine:
    """What loads it (`module:function`), and what it can."""

    loader: str
    abilities: Abilities


ENGINES = {
    DEFAULT_BACKEND: Engine("eaglebench.backends.loading:load_embedded", Abilities()),
    "vllm": Engine("eaglebench.backends.vllm:load_vllm", VLLM),
}


def abilities_of(backend: str) -> Abilities:
    """What an engine can be asked.

    Raises:
        UsageError: there is no engine of that name.
    """
    return _engine(backend).abilities


def open_runtime(choice: ModelChoice) -> Runtime:
    """Load models into the runtime of an engine.

    Raises:
        UsageError: the models can't be had, don't fit each other, or the engine is unknown.
    """
    module_name, _, function_name = _engine(choice.backend).loader.partition(":")
    load: Any = getattr(import_module(module_name), function_name)
    return cast("Runtime", load(choice))


def open_profiler(path: Path) -> AbstractContextManager[None]:
    """Profile what runs inside the context into a Chrome trace at `path`."""
    profile_to: Any = import_module("eaglebench.backends.profiling").profile_to
    return cast("AbstractContextManager[None]", profile_to(path))


def _engine(backend: str) -> Engine:
    if backend not in ENGINES:
        raise UsageError(f"unknown backend {backend!r}", hint=f"known: {', '.join(ENGINES)}")
    return ENGINES[backend]
