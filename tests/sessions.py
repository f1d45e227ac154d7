"""Sessions on a scripted runtime, for tests of what is stored, compared and shown."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eaglebench.backends.seam import Runtime
from eaglebench.bench.block import BLOCK_DEPTH
from eaglebench.bench.session import IsPrecise, Session, SessionWork
from eaglebench.clock import Clock
from eaglebench.plan.cell import Cell, cell_id
from eaglebench.plan.conversation import Conversation, PromptKind, Turn
from eaglebench.plan.replay import Replay
from eaglebench.plan.run_config import make_run_config
from eaglebench.progress import SilentProgress
from eaglebench.records.knobs import EngineKnobs
from eaglebench.store.run_folder import RunFolder
from tests.fake_clock import FakeClock

NOW = datetime(2026, 11, 30, 2, 13, tzinfo=UTC)


def make_talk(
    question_id: str, *texts: str, kind: PromptKind = "chat", measured: Sequence[bool] = ()
) -> Conversation:
    """A conversation with one turn a text."""
    flags = list(measured) or [True] * len(texts)
    turns = tuple(Turn(text=t, measured=m) for t, m in zip(texts, flags, strict=True))
    return Conversation(question_id=question_id, category="test", kind=kind, turns=turns)


def make_talks(count: int = 4) -> list[Conversation]:
    """Two-turn chats that begin alike."""
    return [
        make_talk(f"q{n}", f"Please tell me about item {n}.", "And then?") for n in range(count)
    ]


def make_cell(**knobs: Any) -> Cell:
    """A cell with these knobs."""
    made = EngineKnobs(**knobs)
    return Cell(cell_id=cell_id(made), knobs=made)


def make_folder(root: Path) -> RunFolder:
    """A folder with a manifest, as the command line makes it."""
    folder = RunFolder.create(root, "toy suite", {"seed": 0}, NOW)
    folder.write_manifest(
        {
            "status": "running",
            "config": {"suite": "toy", "model": "toy", "arms": ["radix", "no-cache"]},
            "suite": {"name": "toy", "version": 1},
            "models": {"target_id": "toy", "dtype": "float32", "warnings": []},
        }
    )
    return folder


def make_session(
    runtime: Runtime,
    folder: RunFolder,
    talks: Sequence[Conversation],
    *,
    cells: Sequence[Cell] | None = None,
    replay: Replay | None = None,
    clock: Clock | None = None,
    is_precise: IsPrecise = lambda _folder, _cell_id: True,
    block_depth: int = BLOCK_DEPTH,
    **config: Any,
) -> Session:
    """A session over these conversations in every cell."""
    settled = make_run_config({"suite": "toy", "max_new_tokens": 24, **config})
    return Session(
        SessionWork(
            config=settled,
            cells=tuple(cells or [make_cell()]),
            conversations_of=lambda _: talks,
            replay=replay,
            is_precise=is_precise,
            block_depth=block_depth,
        ),
        runtime,
        folder,
        progress=SilentProgress(),
        clock=clock or FakeClock(tick_s=0.5),
    )
