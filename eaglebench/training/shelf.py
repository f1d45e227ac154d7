"""Studies on disk: the target computes each conversation once, however often it is seen.

A file a conversation, named by a digest of its tokens; what has been put there stays valid as long as
target and auxiliary layers are the same, which the folder's recipe vouches for.
"""

from collections.abc import Sequence
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from eaglebench.errors import StorageError
from eaglebench.training.conversation import Conversation
from eaglebench.training.teacher import Lesson, Study, Teacher

_FIELDS = tuple(field.name for field in fields(Study))


class Shelf:
    """Gives lessons; studies what it does not have."""

    def __init__(self, teacher: Teacher, folder: Path | None) -> None:
        self._teacher = teacher
        self._folder = folder
        if folder is not None:
            folder.mkdir(exist_ok=True)

    def lesson(self, conversations: Sequence[Conversation]) -> Lesson:
        """A batch; studies that are missing are computed together and kept."""
        found = {each.ids: study for each in conversations if (study := self._read(each))}
        missing = [each for each in conversations if each.ids not in found]
        if missing:
            for each, new in zip(missing, self._teacher.study(missing), strict=True):
                self._keep(each, new)
                found[each.ids] = new
        return self._teacher.lesson(conversations, [found[each.ids] for each in conversations])

    def _read(self, conversation: Conversation) -> Study | None:
        path = self._path(conversation)
        if path is None or not path.exists():
            return None
        try:
            return Study(**load_file(path))
        except (SafetensorError, TypeError):  # cut off when the disk was full
            return None

    def _keep(self, conversation: Conversation, study: Study) -> None:
        path = self._path(conversation)
        if path is None:
            return
        tensors = {name: getattr(study, name).contiguous().cpu() for name in _FIELDS}
        fresh = path.with_suffix(".new")
        try:
            save_file(tensors, fresh)
            fresh.replace(path)
        except OSError as error:
            raise StorageError(
                f"{path} can't be written: {error.strerror}",
                hint="--no-keep-studies computes them anew each time instead",
            ) from error

    def _path(self, conversation: Conversation) -> Path | None:
        if self._folder is None:
            return None
        text = ",".join(map(str, conversation.ids))
        return self._folder / f"{sha256(text.encode()).hexdigest()[:24]}.safetensors"
