"""Blocks that keep a batch full, and how full it was."""

from dataclasses import replace
from pathlib import Path

import pytest

from eaglebench.bench.block import BLOCK_DEPTH, make_blocks
from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.observation import StepTimes
from eaglebench.stats.acceptance import occupancy
from tests.fakes import ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talks


@pytest.mark.parametrize("parallel", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("count", [1, 2, 7, 12, 31, 32, 64, 80, 200])
def test_blocks_hold_every_conversation_once_and_are_deep_enough(parallel: int, count: int) -> None:
    """In order; one each where nothing is batched, else eight for each place or all together."""
    talks = make_talks(count)

    blocks = make_blocks(talks, parallel, {})

    assert [talk for block in blocks for talk in block.conversations] == talks
    assert [block.number for block in blocks] == list(range(len(blocks)))
    sizes = [len(block.conversations) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    if parallel == 1:
        assert sizes == [1] * count
    else:
        assert min(sizes) >= BLOCK_DEPTH * parallel or len(blocks) == 1


def test_no_conversation_is_no_block() -> None:
    """An empty replay, for one."""
    assert make_blocks([], 4, {}) == []


def make_block(running_rows: int | None, parallel: int | None = 4) -> MeasuredBlock:
    """Ten steps of a batch."""
    times = StepTimes(
        prefill_s=0,
        mixed_s=0,
        decode_s=1,
        prefill_steps=2,
        mixed_steps=3,
        decode_steps=5,
        running_rows=running_rows,
    )
    return MeasuredBlock(
        cell_id="page1",
        arm="radix",
        pass_index=0,
        block=0,
        order=0,
        question_ids=("q",),
        output_tokens=10,
        verify_steps=5,
        wall_s=1.0,
        times=times,
        parallel=parallel,
    )


def test_occupancy_is_rows_over_places_of_all_steps() -> None:
    """(40 + 30) of 80; unknown where one block did not record it."""
    assert occupancy([make_block(40), make_block(30)]) == 70 / 80
    assert occupancy([make_block(40), make_block(None)]) is None
    assert occupancy([make_block(40, None)]) is None
    assert occupancy([]) is None


def test_a_batch_is_fed_as_places_become_free(tmp_path: Path) -> None:
    """Answers of 4 to 64 tokens, four at a time: at least nine of ten places are taken."""
    folder = make_folder(tmp_path)
    talks = [
        replace(talk, turns=(replace(talk.turns[0], max_new_tokens=4 + number * 17 % 61),))
        for number, talk in enumerate(make_talks(48))
    ]

    make_session(ScriptedRuntime(), folder, talks, cells=[make_cell(parallel=4)]).run()

    assert len({turn.counters.output_tokens for turn in folder.turns()}) > 4
    for arm in ("radix", "no-cache"):
        share = occupancy([block for block in folder.blocks() if block.arm == arm])
        assert share is not None
        assert 0.9 <= share <= 1
