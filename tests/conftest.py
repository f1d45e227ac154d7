"""What holds for every test: no width but the one it asks for."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _own_width() -> Iterator[None]:
    """A terminal's width in the surroundings is not the test's.

    Through a patch of its own: the one that tests ask for has to be the last that is undone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
