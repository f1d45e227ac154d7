"""Suites: TOML files that say what is asked and with which defaults."""

import tomllib
from difflib import get_close_matches
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eaglebench.errors import InputFileError, UsageError
from eaglebench.files import decode_text, why
from eaglebench.plan.explain import explain_validation

_MOST = 10_000
_MOST_TOKENS = 1_000_000
"""More than any workload needs, and still made in a moment."""
Few = Annotated[int, Field(ge=1, le=_MOST)]
Tokens = Annotated[int, Field(ge=1, le=_MOST_TOKENS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class QuestionSource(_Strict):
    """Where the questions come from when the user names no file: an asset."""

    asset: str
    fields: dict[str, str] = Field(default_factory=dict)


class QuestionsWorkload(_Strict):
    """Each question is a conversation."""

    kind: Literal["questions"]
    max_turns: Few | None = None


class MultiTurnWorkload(_Strict):
    """Longer conversations: the turns of several questions one after another."""

    kind: Literal["multi-turn"]
    turns: Annotated[int, Field(ge=2, le=_MOST)] = 4


class SharedPrefixWorkload(_Strict):
    """Several questions behind one long, generated system prompt."""

    kind: Literal["shared-prefix"]
    prefix_words: Tokens = 200


class LadderWorkload(_Strict):
    """Donors that share one unit more each with a test prompt, then the test prompt.

    Units are words and punctuation marks. `seed_sentence` is the first ladder; the others are made
    of sentences of the questions, cut to `test_units`. All prompts of a ladder stand behind the same
    `lead_units` of other questions, so that its branch points lie several windows deep.
    """

    kind: Literal["prefix-ladder"]
    seed_sentence: str
    ladders: Few = 40
    donors: Few = 9
    test_units: Annotated[int, Field(ge=2, le=_MOST)] = 12
    lead_units: Annotated[int, Field(ge=0, le=_MOST_TOKENS)] = 0
    donor_ending: str = "xxx"
    donor_new_tokens: Tokens = 3
    test_new_tokens: Tokens = 20


class PagedLadderWorkload(_Strict):
    """A ladder whose branch points lie at multiples of the cell's page size."""

    kind: Literal["prefix-ladder-paged"]
    ladders: Few = 40
    donors: Few = 9
    donor_ending: str = "xxx"
    donor_new_tokens: Tokens = 3
    test_new_tokens: Tokens = 20


class PageEdgesWorkload(_Strict):
    """Prompts whose lengths lie around multiples of the page and of the chunk, each sent twice."""

    kind: Literal["page-edges"]
    multiples: tuple[Few, ...] = Field(default=(1, 2, 3), strict=False)
    offsets: tuple[Annotated[int, Field(ge=-_MOST, le=_MOST)], ...] = Field(
        default=(-1, 0, 1, 2), strict=False
    )
    new_tokens: Tokens = 16


Workload = Annotated[
    QuestionsWorkload
    | MultiTurnWorkload
    | SharedPrefixWorkload
    | LadderWorkload
    | PagedLadderWorkload
    | PageEdgesWorkload,
    Field(discriminator="kind"),
]


class Suite(_Strict):
    """What is asked, and what a run of it uses where the user says nothing.

    `version` goes up with every change that can move a measured number. `defaults` holds options
    of `run` by their names in `RunConfig`.
    """

    name: str
    version: Annotated[int, Field(ge=1)]
    description: str
    questions: QuestionSource
    workload: Workload
    defaults: dict[str, Any] = Field(default_factory=dict)
    sha256: str


def suite_names() -> list[str]:
    """Names of all suites, sorted."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in shipped_folder().iterdir()
        if entry.name.endswith(".toml")
    )


def load_suite(name: str) -> Suite:
    """A suite by name, or a TOML file of the user's by path.

    Raises:
        UsageError: no suite is called so; the nearest names are offered.
        InputFileError: the file is broken or holds unknown keys.
    """
    if name.endswith(".toml"):
        return read_suite(Path(name))
    known = suite_names()
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        raise UsageError(
            f"no suite is called {name!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}",
        )
    return read_suite(shipped_folder() / f"{name}.toml")


def read_suite(source: Path | Traversable) -> Suite:
    """Read and check one suite file.

    Raises:
        InputFileError: it can't be read, is no TOML, or holds unknown or impossible values.
    """
    where = str(source)
    try:
        content = source.read_bytes()
        values = tomllib.loads(decode_text(where, content))
    except OSError as error:
        raise InputFileError(where, f"can't be read: {why(error)}") from error
    except RecursionError as error:
        raise InputFileError(where, "nested too deeply") from error
    except ValueError as error:  # of TOML, and of numbers with too many digits
        raise InputFileError(where, f"not a readable suite: {error}") from error
    try:
        return Suite.model_validate({**values, "sha256": sha256(content).hexdigest()})
    except ValidationError as error:
        raise InputFileError(where, explain_validation(error, Suite)) from error


def shipped_folder() -> Traversable:
    """Where suites and matrices lie: inside the wheel, or beside the package in a checkout."""
    inside = files("eaglebench") / "suites"
    if inside.is_dir():
        return inside
    beside = Path(__file__).parents[2] / "suites"
    if beside.is_dir():
        return beside
    raise UsageError("the suites that ship with eaglebench are missing; install it again")
