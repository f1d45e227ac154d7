"""Rows flattened behind one another: tokens, positions, slots and logits, written out by hand."""

import numpy as np
import pytest
import torch

from eaglebench.engine.batch import WindowView, assemble, num_logits
from eaglebench.engine.plan import PrefillRow, VerifyRow
from eaglebench.engine.request import EngineRequest
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.tables import BlockTable
from eaglebench.spec.proposal import Proposal
from tests.engines import make_request, make_rule

CPU = torch.device("cpu")


def make_running(pages: list[int], *, num_prompt: int, outputs: int = 0) -> EngineRequest:
    """A request on pages of four slots; its tokens are 100, 101, .."""
    request = make_request("r", tuple(range(100, 100 + num_prompt)))
    made = EngineRequest(request, arrival=0, rule=make_rule(request), replay=None, added_s=0.0)
    made.append(range(100 + num_prompt, 100 + num_prompt + outputs))
    made.table = BlockTable(PageGeometry(4))
    made.table.append(np.array(pages, dtype=np.int32))
    return made


def test_a_verify_row_and_a_chunk_stand_behind_one_another() -> None:
    """A root and two drafts at positions 5 to 7, then prompt tokens 3 to 5 of another request."""
    verified = make_running([7, 2], num_prompt=4, outputs=2)
    verified.num_written = 5
    verified.proposal = Proposal((11, 12), (1.0, 1.0))
    chunked = make_running([9, 4], num_prompt=8)

    batch = assemble(
        [VerifyRow(verified), PrefillRow(chunked, 3, 6)],
        device=CPU,
        backend="loop",
        wants_seam_guess=False,
    )

    assert batch.token_ids.tolist() == [105, 11, 12, 103, 104, 105]
    assert batch.positions.tolist() == [5, 6, 7, 3, 4, 5]
    assert [slots.tolist() for slots in batch.written] == [[9, 10, 11], [39, 16, 17]]
    assert batch.layout.slot_mapping.tolist() == [9, 10, 11, 39, 16, 17]
    assert [span.context_len for span in batch.layout.rows] == [8, 6]
    assert (batch.starts, batch.logit_starts) == ((0, 3), (0, 3))
    assert batch.logit_rows.tolist() == [0, 1, 2]  # a middle chunk needs none


def test_siblings_share_a_position() -> None:
    """Two nodes under the root and one under the first of them."""
    request = make_running([7, 2, 3], num_prompt=4, outputs=2)
    request.num_written = 5
    request.proposal = Proposal((11, 12, 13), (1.0,) * 3, (-1, -1, 0))

    batch = assemble([VerifyRow(request)], device=CPU, backend="loop", wants_seam_guess=False)

    assert batch.positions.tolist() == [5, 6, 6, 7]
    assert batch.logit_rows.tolist() == [0, 1, 2, 3]


def test_logits_of_a_chunk_are_those_that_somebody_asks_for() -> None:
    """The last of a prompt samples; a middle one only where an arm wants the target's guess."""
    request = make_running([7, 2], num_prompt=8)
    middle, last = PrefillRow(request, 0, 5), PrefillRow(request, 5, 8)

    assert num_logits(middle, wants_seam_guess=False) == 0
    assert num_logits(middle, wants_seam_guess=True) == 1
    assert num_logits(last, wants_seam_guess=False) == 1


def test_window_layers_look_at_the_window_alone() -> None:
    """Window 3: the chunk's own slots and the two in front of its first token, mapped by the pool."""
    request = make_running([7, 2], num_prompt=8)
    view = WindowView(3, lambda slots: slots + 1000)

    batch = assemble(
        [PrefillRow(request, 5, 8)],
        device=CPU,
        backend="loop",
        wants_seam_guess=False,
        window=view,
    )

    assert batch.layout.window is not None
    (span,) = batch.layout.window.rows
    assert span.slots is not None
    assert span.slots.tolist() == [1031, 1008, 1009, 1010, 1011]  # positions 3 to 7


@pytest.mark.parametrize("pages", [range(1, 9001), range(9000, 0, -1)])
def test_the_plan_of_a_long_request_copies_none_of_its_slots(pages: range) -> None:
    """36,000 slots: a run needs no list of slots, others are read where the table keeps them."""
    request = make_running(list(pages), num_prompt=4, outputs=35_000)
    request.num_written = request.num_known - 1

    batch = assemble([VerifyRow(request)], device=CPU, backend="loop", wants_seam_guess=False)

    (span,) = batch.layout.rows
    assert span.context_len == request.num_known
    if span.slots is None:
        assert span.run_start == 4
    else:
        table_slots = request.held.leading(span.context_len).slots
        assert np.shares_memory(span.slots.numpy(), table_slots)
    assert (span.slots is None) == (pages[0] == 1)
