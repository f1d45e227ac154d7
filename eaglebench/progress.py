"""What something long tells whoever waits for it."""

from typing import Protocol


class Progress(Protocol):
    """Events of a run or of training; the command line shows them."""

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """A stage of `total` units begins, of which `done` were done before."""
        ...

    def extend(self, units: int) -> None:
        """So many units come on top."""
        ...

    def advance(self, units: int, state: str) -> None:
        """Units of the stage are done; `state` says how it stands."""
        ...

    def note(self, line: str) -> None:
        """Something to say in a line of its own."""
        ...


class SilentProgress:
    """Nobody watches."""

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """Say nothing."""

    def extend(self, units: int) -> None:
        """Say nothing."""

    def advance(self, units: int, state: str) -> None:
        """Say nothing."""

    def note(self, line: str) -> None:
        """Say nothing."""
