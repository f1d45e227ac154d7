"""Every law of the books as one function.

L1  Every page but the dummy has exactly one owner: the free list, one request, or the tree.
L2  A request's first `tree_owned_slots` slots lie in pages of the tree, the rest in its own.
L3  draft_valid_len <= num_written <= slots of the table; tree_owned_slots <= num_written.
L4  draft_valid_len <= known tokens - 1: the last known token has no successor yet.
L5  A step writes only into pages that the writing request owns.
L6  With window layers, a request's slots from `window_start` on have window pages, and both pools
    satisfy W1, W2 (`window.py`) and R1, R2 (`residency.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.cache import PrefixCache
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pages import DUMMY_PAGE, PageAllocator
from eaglebench.kv.tables import BlockTable

_NEEDS_SUCCESSOR = 1
"""Known tokens at the end that can't have settled draft KV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedView:
    """What the audit needs to know of a running request."""

    request_id: str
    table: BlockTable
    tree_owned_slots: int
    num_written: int
    draft_valid_len: int
    num_known_tokens: int
    window_start: int | None = None


def audit(
    pages: PageAllocator,
    cache: PrefixCache,
    geometry: PageGeometry,
    requests: Sequence[OwnedView],
    written: Mapping[str, NDArray[np.int64]] | None = None,
) -> None:
    """Check L1 to L6 and the cache's and the pools' own invariants.

    `written` maps request ids to the slots they wrote in this step.

    Raises:
        InvariantError: a law is broken; the message names it and who broke it.
    """
    pages.audit()
    cache.audit()
    tree_pages = cache.owned_pages()
    own = {view.request_id: _own_pages(view, geometry) for view in requests}
    _check_owners(pages, tree_pages, own)
    in_tree = np.zeros(pages.num_pages + 1, dtype=np.bool_)
    in_tree[tree_pages] = True
    for view in requests:
        _check_lengths(view, in_tree, geometry)
        _check_window(view, pages, geometry)
    for request_id, slots in (written or {}).items():
        _check_writes(request_id, slots, own.get(request_id), geometry)


def _check_window(view: OwnedView, pages: PageAllocator, geometry: PageGeometry) -> None:
    if view.window_start is None:
        return
    needed = view.table.pages[geometry.page_of_slot(view.window_start) :]
    if not pages.is_live(needed).all():
        raise InvariantError(f"L6: request {view.request_id} has lost a window page it looks at")


def _own_pages(view: OwnedView, geometry: PageGeometry) -> NDArray[np.int32]:
    return view.table.pages[geometry.pages_for(view.tree_owned_slots) :]


def _check_owners(
    pages: PageAllocator, tree_pages: NDArray[np.int32], own: Mapping[str, NDArray[np.int32]]
) -> None:
    owners = np.zeros(pages.num_pages + 1, dtype=np.int64)
    claims = {"the free list": pages.free_pages(), "the tree": tree_pages, **own}
    for claimed in claims.values():
        np.add.at(owners, claimed, 1)
    if owners[DUMMY_PAGE]:
        raise InvariantError("L1: somebody owns page 0, the dummy page")
    wrong = np.flatnonzero(owners[1:] != 1) + 1
    if len(wrong):
        page = int(wrong[0])
        names = [name for name, claimed in claims.items() if page in claimed]
        raise InvariantError(
            f"L1: {len(wrong)} pages don't have one owner; page {page} has "
            f"{int(owners[page])}: {', '.join(names) or 'nobody'}"
        )


def _check_lengths(view: OwnedView, in_tree: NDArray[np.bool_], geometry: PageGeometry) -> None:
    name = f"request {view.request_id}"
    borrowed = view.table.pages[: geometry.pages_for(view.tree_owned_slots)]
    if not in_tree[borrowed].all():
        raise InvariantError(f"L2: {name} points at a page that the tree does not own")
    if not (
        view.tree_owned_slots <= view.num_written <= view.table.num_slots
        and view.draft_valid_len <= view.num_written
    ):
        raise InvariantError(f"L3: {name} has lengths out of order: {view}")
    if view.draft_valid_len > max(view.num_known_tokens - _NEEDS_SUCCESSOR, 0):
        raise InvariantError(
            f"L4: {name} claims draft KV for {view.draft_valid_len} slots, but knows only "
            f"{view.num_known_tokens} tokens"
        )


def _check_writes(
    request_id: str,
    slots: NDArray[np.int64],
    own: NDArray[np.int32] | None,
    geometry: PageGeometry,
) -> None:
    touched = np.unique(geometry.pages_of_slots(slots))
    if DUMMY_PAGE in touched:
        raise InvariantError(f"L5: request {request_id} wrote into page 0, which nobody may own")
    foreign = touched if own is None else touched[~np.isin(touched, own)]
    if len(foreign):
        raise InvariantError(
            f"L5: request {request_id} wrote into page {int(foreign[0])}, which it does not own"
        )
