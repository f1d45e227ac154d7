"""What a head is trained from and how, who is told about it, and what came out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eaglebench.errors import UsageError
from eaglebench.records.flags import flag_of


def _said(default: Any, text: str) -> Any:
    """A field whose option says this of it."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """Everything that decides what a head becomes, besides its target; the command's options."""

    num_conversations: int = _said(4000, "Conversations the target writes.")
    user_tokens: int = _said(64, "Most tokens of a user turn.")
    answer_tokens: int = _said(192, "Most tokens of an answer.")
    two_turn_share: float = _said(0.4, "Share of conversations with a second turn.")
    batch: int = _said(96, "Conversations written side by side.")
    updates: int = _said(1500, "Steps of the optimizer.")
    batch_tokens: int = _said(2048, "Most tokens of an update.")
    levels: int = _said(4, "Levels of training-time test.")
    level_decay: float = _said(0.8, "Weight of a level, as a factor to the one before.")
    draft_vocab_size: int = _said(8192, "Most tokens that can be proposed.")
    aux_layer_ids: tuple[int, ...] | None = _said(
        None,
        "States that feed the head, k for what enters layer k.  [default: 2, n // 2, n - 3]",
    )
    intermediate_size: int | None = _said(None, "Width of the head's MLP.  [default: the target's]")
    matrix_rate: float = _said(0.02, "Highest learning rate of matrices (Muon).")
    other_rate: float = _said(1e-3, "Highest learning rate of the rest (AdamW).")
    warm_updates: int = _said(30, "Updates of linear warm-up.")
    held_out_share: float = _said(0.02, "Share of conversations kept for the figures.")
    ngram_words: int = _said(8, "Words in a row that may not be shared with --exclude.")
    seed: int = _said(1, "Of conversations, first weights and order.")

    def __post_init__(self) -> None:
        if self.num_conversations < 0:
            raise UsageError(f"{self.num_conversations} conversations; expected 0 or more")
        for name in (
            *("user_tokens", "answer_tokens", "batch", "updates", "batch_tokens", "levels"),
            *("draft_vocab_size", "intermediate_size", "ngram_words"),
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{flag_of(name)} is {value}; expected at least 1")
        for name in ("two_turn_share", "level_decay", "held_out_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{flag_of(name)} is {getattr(self, name)}; expected 0 to 1")
        for name in ("matrix_rate", "other_rate"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{flag_of(name)} is {getattr(self, name)}; expected more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFiles:
    """What is read and written.

    Attributes:
        target: folder of the target.
        target_name: what the user called it.
        out: folder of the new head; what is needed to go on lies in `out/training`.
        conversations: further conversations, token ids or messages, a JSON object a line.
        excluded: texts that no conversation may share `ngram_words` words in a row with.
        start_from: folder of a head to go on from; None is a new one.
        keeps_studies: keep what the target computes of each conversation on disk, so that it is
            computed once.
    """

    target: Path
    target_name: str
    out: Path
    conversations: tuple[Path, ...] = ()
    excluded: tuple[str, ...] = ()
    start_from: Path | None = None
    keeps_studies: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMachine:
    """Where it is computed.

    Attributes:
        dtype: of the target and of the head's products; the head's weights are float32.
        device: `cpu` or `cuda`.
        num_threads: None is what torch takes.
    """

    dtype: str = "bfloat16"
    device: str = "cpu"
    num_threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a greedy verify step would accept of the head, a step begun at every position.

    Attributes:
        positions: how many steps that is.
        by_level: of them, those whose first 1, 2, ... proposals are all right.
    """

    positions: int
    by_level: tuple[int, ...]

    @property
    def rates(self) -> tuple[float, ...] | None:
        """Share of steps that accept at least 1, 2, ... tokens; None without a position."""
        if not self.positions:
            return None
        return tuple(right / self.positions for right in self.by_level)

    @property
    def accepted_per_step(self) -> float | None:
        """Accepted tokens a step at as many proposals as there are levels."""
        return sum(self.by_level) / self.positions if self.positions else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What came out.

    Attributes:
        folder: the new head.
        conversations: how many were learned from.
        tokens: theirs.
        seen_tokens: tokens of all updates; more than `tokens` if they were seen several times.
        excluded: conversations left out because they share words with an excluded text.
        held_out: conversations kept for the figures.
        coverage: share of answer tokens that can be proposed.
        before: acceptance on held-out conversations before the first update.
        after: and after the last.
    """

    folder: Path
    conversations: int
    tokens: int
    seen_tokens: int
    excluded: int
    held_out: int
    coverage: float
    before: Acceptance
    after: Acceptance
