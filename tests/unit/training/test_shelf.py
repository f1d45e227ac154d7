"""Lessons: what the target says, padded, computed once."""

from collections.abc import Sequence
from pathlib import Path

import torch

from eaglebench.training.conversation import Conversation
from eaglebench.training.teacher import Lesson, Shelf, Study, Teacher
from tests.engines import tiny_models
from tests.unit.training.lessons import exchange, logits_behind

DRAFT_IDS = torch.arange(32, 128)
AUX_LAYER_IDS = (1, 3)
CONVERSATIONS = [exchange("Say again: plum.", "plum."), exchange("Say twice: ab.", "ab, ab.")]


class RestingTeacher(Teacher):
    """Refuses to study."""

    def study(self, conversations: Sequence[Conversation]) -> list[Study]:
        """Fail."""
        raise AssertionError(f"{len(conversations)} conversations were to be studied again")


def make_shelf(folder: Path | None = None) -> Shelf:
    """Over the tiny target in float64."""
    return Shelf(Teacher(tiny_models().target, AUX_LAYER_IDS, DRAFT_IDS), folder)


def equal(one: Lesson, other: Lesson) -> bool:
    """Whether all tensors agree to the last bit."""
    return all(torch.equal(getattr(one, n), getattr(other, n)) for n in Lesson.__slots__)


def test_a_lesson_holds_what_the_target_says_of_answers() -> None:
    """Distribution over what can be proposed, and the target's choice, at each token's decision."""
    lesson = make_shelf().lesson(CONVERSATIONS)
    compared = 0
    for row, each in enumerate(CONVERSATIONS):
        asked = (lesson.decision[row] >= 0).nonzero().flatten().tolist()
        (start, end) = each.answers[0]
        assert asked == list(range(start - 1, end - 1))
        for position in asked:
            number = int(lesson.decision[row, position])
            logits = logits_behind(tiny_models().target, each.ids[: position + 1])
            wanted = torch.softmax(logits[DRAFT_IDS], -1)
            torch.testing.assert_close(lesson.wanted[number], wanted, atol=1e-10, rtol=0)
            assert lesson.argmax[number] == logits.argmax()
            compared += 1

    assert compared == len(lesson.wanted) == sum(e.num_answer_tokens for e in CONVERSATIONS)


def test_a_lesson_does_not_depend_on_its_neighbours() -> None:
    """A conversation beside others has the states it has alone; the rest of its row is zero."""
    both, alone = (make_shelf().lesson(CONVERSATIONS[:count]) for count in (2, 1))
    length = len(CONVERSATIONS[0].ids)

    torch.testing.assert_close(both.aux[0, :length], alone.aux[0], atol=1e-10, rtol=0)
    assert both.aux[0, length:].abs().sum() == 0
    assert both.ids[0, :length].tolist() == list(CONVERSATIONS[0].ids)


def test_studies_are_computed_once_and_give_the_same_lesson(tmp_path: Path) -> None:
    """A second shelf over the folder asks the target for nothing and gives the same tensors."""
    first = make_shelf(tmp_path / "studies").lesson(CONVERSATIONS)
    resting = RestingTeacher(tiny_models().target, AUX_LAYER_IDS, DRAFT_IDS)
    again = Shelf(resting, tmp_path / "studies").lesson(CONVERSATIONS)

    assert equal(first, again)
    assert len(list((tmp_path / "studies").iterdir())) == len(CONVERSATIONS)


def test_a_study_that_was_cut_off_is_computed_anew(tmp_path: Path) -> None:
    """A file that is no study does not stop the training."""
    folder = tmp_path / "studies"
    first = make_shelf(folder).lesson(CONVERSATIONS)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:40])

    assert equal(first, make_shelf(folder).lesson(CONVERSATIONS))
