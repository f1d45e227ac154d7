"""The requests of a backend, pulled when there is room for one more."""

from collections.abc import Iterable

from eaglebench.errors import InvariantError
from eaglebench.records.generation import GenerationRequest


class Source:
    """Requests pulled one by one; remembers whether the end was reached."""

    def __init__(self, requests: Iterable[GenerationRequest | None]) -> None:
        self._iterator = iter(requests)
        self.is_exhausted = False
        self.is_waiting = False

    def take(self) -> GenerationRequest | None:
        """The next request; None when there is nothing to start now."""
        self.is_waiting = False
        try:
            request = next(self._iterator)
        except StopIteration:
            self.is_exhausted = True
            return None
        self.is_waiting = request is None
        return request

    def check_idle(self) -> None:
        """Refuse to stand still while a request waits for another one.

        Raises:
            InvariantError: nothing runs, and nothing could ever start.
        """
        if self.is_waiting:
            raise InvariantError("a request waits for another one, but none is running")
