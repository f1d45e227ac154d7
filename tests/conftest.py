"""What holds for every test: no width but the one it asks for."""

import pytest


@pytest.fixture(autouse=True)
def _own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal's width in the surroundings is not the test's."""
    monkeypatch.delenv("COLUMNS", raising=False)
