"""Backends by name."""

import pytest

from eaglebench.backends.registry import open_runtime
from eaglebench.errors import UsageError
from eaglebench.records.models import ModelChoice


def test_an_unknown_backend_is_refused_by_name() -> None:
    """The refusal names what was asked for and the backends that there are."""
    with pytest.raises(UsageError, match="unknown backend 'other'") as caught:
        open_runtime(ModelChoice(target="nowhere", backend="other"))

    assert caught.value.hint == "known: embedded, vllm"
