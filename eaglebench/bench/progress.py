"""What a run tells whoever watches it."""

from typing import Protocol


class Progress(Protocol):
    """Events of a run; the command line shows them."""

    def start(self, num_questions: int) -> None:
        """The run begins; so many questions in all cells, arms and rounds are left."""
        ...

    def extend(self, num_questions: int) -> None:
        """One more round is needed; so many questions come on top."""
        ...

    def advance(self, cell_id: str, arm: str, num_questions: int, tokens_per_s: float) -> None:
        """Questions of one arm are finished."""
        ...

    def note(self, line: str) -> None:
        """Something worth a line."""
        ...


class SilentProgress:
    """Nobody watches."""

    def start(self, num_questions: int) -> None:
        """Say nothing."""

    def extend(self, num_questions: int) -> None:
        """Say nothing."""

    def advance(self, cell_id: str, arm: str, num_questions: int, tokens_per_s: float) -> None:
        """Say nothing."""

    def note(self, line: str) -> None:
        """Say nothing."""
