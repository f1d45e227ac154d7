"""Which tokens a head may propose: those that answers use most."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eaglebench.training.conversation import Conversation


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """Tokens that can be proposed.

    Attributes:
        target_ids: [size] int64, ascending.
        coverage: share of the answers' tokens that are among them.
    """

    target_ids: Tensor
    coverage: float


def choose_vocabulary(
    conversations: Iterable[Conversation],
    *,
    size: int,
    vocab_size: int,
    always: Sequence[int],
) -> DraftVocabulary:
    """The `size` most frequent tokens of answers, or all tokens if there are no more.

    Args:
        conversations: whose answers are counted.
        size: how many at most.
        vocab_size: of the target.
        always: ids that are taken whatever their count, such as those that end an answer.
    """
    counts = count_answer_tokens(conversations)
    # Of equal counts the lowest id wins; ids that never occur fill what is left.
    ranked = sorted(range(vocab_size), key=lambda token: (-counts[token], token))
    kept = dict.fromkeys([*always, *ranked])
    chosen = sorted(list(kept)[:size])
    return DraftVocabulary(torch.tensor(chosen), coverage_of(counts, chosen))


def count_answer_tokens(conversations: Iterable[Conversation]) -> Counter[int]:
    """How often each token stands in an answer."""
    counts: Counter[int] = Counter()
    for each in conversations:
        for start, end in each.answers:
            counts.update(each.ids[start:end])
    return counts


def coverage_of(counts: Counter[int], target_ids: Iterable[int]) -> float:
    """Share of all counted tokens that are among `target_ids`; 1 where nothing was counted."""
    total = counts.total()
    return sum(counts[token] for token in target_ids) / total if total else 1.0
