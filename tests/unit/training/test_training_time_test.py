"""Training-time test against the head that runs: the same logits at every level."""

import torch
from torch import Tensor

from eaglebench.model.heads.layer import make_rotary
from eaglebench.training.blueprint import blueprint_of
from eaglebench.training.teacher import Lesson, Shelf, Teacher
from eaglebench.training.training_time_test import (
    LevelScore,
    PastLevel,
    TrainableHead,
    TrainingTimeTest,
    count_accepted,
    decayed,
    soft_cross_entropy,
)
from tests.engines import TINY_HEAD, tiny_models
from tests.plain_heads import PlainHead
from tests.unit.training.lessons import exchange

LEVELS = 3
CONVERSATIONS = [exchange("Say again: plum.", "plum."), exchange("Say twice: ab.", "ab, ab.")]


def shipped() -> tuple[TrainableHead, Shelf, TrainingTimeTest]:
    """The tiny head as a trainable one, in float64, where its lessons come from, and its exam."""
    target = tiny_models().target
    blueprint = blueprint_of(TINY_HEAD, target)
    head = blueprint.build(0, target.device).double()
    teacher = Teacher(target, blueprint.aux_layer_ids, blueprint.target_ids)
    rotary = make_rotary(blueprint.config, target.device)
    exam = TrainingTimeTest(rotary, blueprint.target_ids, LEVELS, torch.float64)
    return head, Shelf(teacher, None), exam


def plain(head: TrainableHead) -> PlainHead:
    """The same weights in the slow obvious form."""
    blocks = {"q_proj": "self_attn", "k_proj": "self_attn", "v_proj": "self_attn"}
    blocks |= {"o_proj": "self_attn", "gate_proj": "mlp", "up_proj": "mlp", "down_proj": "mlp"}
    weights = {}
    for name, tensor in head.state_dict().items():
        module = name.split(".", maxsplit=1)[0]
        weights[f"{blocks[module]}.{name}" if module in blocks else name] = tensor
    config = head.config
    return PlainHead(
        weights,
        heads=config.num_attention_heads,
        kv_heads=config.num_kv_heads,
        width=config.head_width,
    )


def propose(head: TrainableHead, lesson: Lesson, row: int, slot: int) -> list[Tensor]:
    """Logits of every level at a slot, level after level through a cold head.

    What stands behind the slot is fed the hidden state of the level before, as when it proposes.
    """
    cold = plain(head)
    width = head.config.hidden_size
    aux = list(torch.split(lesson.aux[row, : slot + 1], width, dim=-1))
    features = cold.fuse3(aux)
    logits = []
    for level in range(LEVELS):
        embedded = lesson.embedded[row, 1 : slot + 2 + level]
        hidden, out = cold.run3(embedded, features)
        logits.append(out[-1])
        features = torch.cat([features, hidden[-1:]])
    return logits


def test_every_level_computes_what_a_proposing_head_computes() -> None:
    """Logits of levels 0, 1, 2 equal those of a head that proposes from that slot.

    Float64, but for the rotary table, which is float32 in `transformers`: hence 1e-6.
    """
    head, shelf, exam = shipped()
    lesson = shelf.lesson(CONVERSATIONS)
    seen: list[Tensor] = []
    head.lm_head.register_forward_hook(lambda _module, _args, out: seen.append(out.detach()))
    with torch.no_grad():
        scores = exam.run(head, lesson)

    assert [len(out) for out in seen] == [int(score.is_asked.sum()) for score in scores]
    for level, (score, logits) in enumerate(zip(scores, seen, strict=True)):
        asked = score.is_asked.nonzero().tolist()
        assert len(asked) >= len(CONVERSATIONS)
        for (row, slot), got in zip(asked, logits, strict=True):
            expected = propose(head, lesson, row, slot)[level]
            torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_slots_are_asked_for_the_answers_tokens_alone() -> None:
    """Slot i at level k stands for token i + 2 + k, and is asked where that is an answer's."""
    head, shelf, exam = shipped()
    lesson = shelf.lesson(CONVERSATIONS[:1])
    with torch.no_grad():
        scores = exam.run(head, lesson)

    (start, end) = CONVERSATIONS[0].answers[0]
    for level, score in enumerate(scores):
        decided = {slot + 2 + level for _, slot in score.is_asked.nonzero().tolist()}
        behind_last_slot = len(CONVERSATIONS[0].ids) - LEVELS + 2 + level
        assert decided == set(range(start, min(end, behind_last_slot)))


def test_the_trained_head_is_right_more_often_than_a_drawn_one() -> None:
    """What the counts say follows what the head knows."""
    head, shelf, exam = shipped()
    lesson = shelf.lesson(CONVERSATIONS)
    drawn = blueprint_of(TINY_HEAD, tiny_models().target)
    drawn.build(0, torch.device("cpu"))
    stranger = TrainableHead(drawn.config, len(drawn.aux_layer_ids), len(drawn.target_ids)).double()
    with torch.no_grad():
        trained = count_accepted(exam.run(head, lesson))
        untrained = count_accepted(exam.run(stranger, lesson))

    assert trained.positions == untrained.positions > 0
    assert sum(trained.by_level) > sum(untrained.by_level)


def test_accepted_counts_are_runs_of_right_levels() -> None:
    """A slot counts at level k only if it was right at every level before, and was always asked."""
    asked = torch.tensor([[True, True, True, False]])
    rights = [[True, True, False, True], [True, False, True, True]]
    zero = torch.zeros(())
    scores = [LevelScore(zero, asked, torch.tensor([right])) for right in rights]

    counted = count_accepted(scores)

    assert (counted.positions, counted.by_level) == (3, (2, 1))
    assert counted.accepted_per_step == 1.0


def test_losses_decay_by_level() -> None:
    """Level k counts with decay to the power of k."""
    nothing = torch.zeros(1, 1, dtype=torch.bool)
    scores = [LevelScore(torch.tensor(x), nothing, nothing) for x in (1.0, 10.0, 100.0)]

    assert decayed(scores, 0.5).item() == 1.0 + 5.0 + 25.0


def test_the_soft_loss_and_its_gradient_are_those_of_the_plain_form() -> None:
    """Value and gradient equal -(w * log_softmax(x)).sum(-1).mean() in float64."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(5, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    wanted = torch.softmax(torch.randn(5, 7, generator=generator, dtype=torch.float64), -1)
    expected = -(wanted * torch.log_softmax(logits, -1)).sum(-1).mean()
    (gradient,) = torch.autograd.grad(expected, logits)

    loss = soft_cross_entropy(logits, wanted)
    (got,) = torch.autograd.grad(2 * loss, logits)

    assert abs(loss.item() - expected.item()) < 1e-6
    torch.testing.assert_close(got, 2 * gradient, atol=1e-12, rtol=0)


def test_levels_append_their_keys() -> None:
    """Each level leaves one pair of K and V, of KV heads, for the levels behind it."""
    head, shelf, _ = shipped()
    lesson = shelf.lesson(CONVERSATIONS)
    past: list[PastLevel] = []
    features = head.fc(lesson.aux)
    ones = torch.ones(1, 1, lesson.ids.shape[1], head.config.head_width, dtype=torch.float64)
    head.step(lesson.embedded, features, ones, ones, past)

    assert [key.shape[1] for key, _ in past] == [head.config.num_kv_heads]
