"""Between blocks nobody runs: every page is free or the tree's, and after a reset free."""

import numpy as np
import pytest

from eaglebench.backends.embedded import EmbeddedBackend
from eaglebench.errors import InvariantError
from tests.counting_models import counting_models
from tests.engines import hybrid_models, make_engine, make_knobs, make_request


def make_backend(page_size: int = 1) -> EmbeddedBackend:
    """An engine whose books nobody audits."""
    knobs = make_knobs(max_total_tokens=128, page_size=page_size)
    return EmbeddedBackend(make_engine(knobs, models=counting_models(), audit=False))


def ask(backend: EmbeddedBackend, first: int = 1) -> None:
    """One block of one question."""
    request = make_request("r", tuple(range(first, first + 20)), max_new_tokens=9)
    (observation,) = backend.generate([request])
    assert observation.finish_reason == "length"


@pytest.mark.parametrize("page_size", [1, 4])
def test_sound_books_pass(page_size: int) -> None:
    """Several blocks and a reset."""
    backend = make_backend(page_size)
    for first in (1, 100, 1):
        ask(backend, first)
    backend.reset()
    ask(backend)


def test_a_block_that_is_broken_off_leaves_an_engine_that_can_go_on() -> None:
    """An interrupt in the middle of a step reaches the caller as it is; the next block is whole."""
    backend = make_backend()
    ask(backend)
    run = backend.engine.runner.run

    def interrupted(*args: object) -> object:
        run(*args)  # type: ignore[arg-type]  # as the engine calls it
        raise KeyboardInterrupt

    backend.engine.runner.run = interrupted  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        ask(backend, 100)
    backend.engine.runner.run = run  # type: ignore[method-assign]

    ask(backend, 100)
    backend.close()


def test_a_leaked_page_ends_the_block() -> None:
    """A request that keeps one page for ever is found although nobody audits."""
    backend = make_backend()
    backend.engine.storage.pages.allocate(1)

    with pytest.raises(InvariantError, match=r"128 pages are .* a page was leaked"):
        ask(backend)


def test_a_lock_that_was_never_given_back_ends_the_block() -> None:
    """A prefix that stays locked can't be evicted any more."""
    backend = make_backend()
    ask(backend)
    storage = backend.engine.storage
    key = backend.engine.config.policy.make_key(np.arange(1, 21, dtype=np.int32), None)
    storage.cache.lock(storage.cache.lookup(key, 19))

    with pytest.raises(InvariantError, match="19 of the latter locked"):
        ask(backend, 100)


def test_a_reset_that_forgets_nothing_is_found() -> None:
    """What a pass leaves must not be hit by the next one."""
    backend = make_backend()
    ask(backend)
    backend.engine.reset = lambda: None  # type: ignore[method-assign]  # the planted fault

    with pytest.raises(InvariantError, match="28 pages are in the tree after a reset"):
        backend.reset()


def test_pages_of_window_layers_are_counted_too() -> None:
    """A window page without an owner is found; without one all is well."""
    knobs = make_knobs(max_total_tokens=256, page_size=4)
    backend = EmbeddedBackend(make_engine(knobs, models=hybrid_models(8), audit=False))
    ask(backend)
    pages = backend.engine.storage.pages
    pages.window_pages.allocate(1)  # type: ignore[attr-defined]  # a pair of pools

    with pytest.raises(InvariantError, match="1 pages of window layers were leaked"):
        ask(backend)
