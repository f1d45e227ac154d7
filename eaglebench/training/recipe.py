"""What a head is trained from and how, who is told about it, and what came out."""

from dataclasses import dataclass
from pathlib import Path

from eaglebench.errors import UsageError
from eaglebench.records.flags import flag_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """Everything that decides what a head becomes, besides its target.

    Attributes:
        num_conversations: conversations that the target has with itself.
        user_tokens: most tokens of a user turn.
        answer_tokens: most tokens of an answer.
        two_turn_share: share of conversations with a second turn.
        batch: conversations written side by side.
        updates: steps of the optimizer.
        batch_tokens: most tokens of one update.
        levels: levels of training-time test, one for each token proposed in a row.
        level_decay: weight of a level's loss, as a factor to the level before.
        draft_vocab_size: most tokens that can be proposed; the target's vocabulary if that is
            smaller.
        aux_layer_ids: states of the target that feed the head; None is 2, n // 2 and n - 3.
        intermediate_size: width inside the head's MLP; None is the target's.
        matrix_rate: highest learning rate of matrices (Muon).
        other_rate: highest learning rate of everything else (AdamW).
        warm_updates: updates of linear warm-up.
        held_out_share: share of conversations that are kept for the figures of the card.
        ngram_words: words in a row that a conversation may not share with an excluded text.
        seed: of the conversations, the head's first weights and the order of batches.
    """

    num_conversations: int = 4000
    user_tokens: int = 64
    answer_tokens: int = 192
    two_turn_share: float = 0.4
    batch: int = 96
    updates: int = 1500
    batch_tokens: int = 2048
    levels: int = 4
    level_decay: float = 0.8
    draft_vocab_size: int = 8192
    aux_layer_ids: tuple[int, ...] | None = None
    intermediate_size: int | None = None
    matrix_rate: float = 0.02
    other_rate: float = 1e-3
    warm_updates: int = 30
    held_out_share: float = 0.02
    ngram_words: int = 8
    seed: int = 1

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
