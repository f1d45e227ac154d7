"""What an option is: said once, and carried from there to flags, help, cells, records and verdicts.

The options of a run stand beside the values they set: those of the configuration with its fields
(`run_fields.py`, `question_fields.py`), axes of the matrix in `axes.py`, switches that set nothing in `options.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from eaglebench.errors import UsageError
from eaglebench.records.flags import DEFAULT_OUTPUT, flag_of
from eaglebench.records.knobs import EngineKnobs, too_small

Kind = Literal[
    "text", "int", "float", "flag", "choice", "numbers", "names", "pair", "values", "object"
]
Affects = Literal["work", "time", "nothing"]
AxisValue = int | str

MODELS = "Models"
SPECULATION = "Speculation (lists make a matrix)"
CACHE = "Cache (lists make a matrix)"
QUESTIONS = "Questions"
SAMPLING = "Sampling"
ENGINE = "Engine"
SESSION = "Session"
OUTPUT = "Output"
LAST = 99
SECTIONS = (MODELS, SPECULATION, CACHE, QUESTIONS, SAMPLING, ENGINE, SESSION, OUTPUT)
"""Of `run --help`, in its order."""


@dataclass(frozen=True, slots=True)
class Need:
    """When an option has an effect.

    Attributes:
        why_not: why it has none where it has none, as half a sentence.
        is_met: asked with what the command knows when it has put its options together.
        is_fatal: whether an option that was typed in vain is refused; False where people repeat the
            command of another run, and only need to hear of it.
    """

    why_not: str
    is_met: Callable[[Any], bool]
    is_fatal: bool = True


ALWAYS = Need("", lambda _: True)
FIXED_PASSES = "the number of passes is fixed; it decides between LEAST and MOST of --passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a run.

    Attributes:
        section: where `--help` shows it (`SECTIONS`).
        help: what it does; the default is added to it.
        kind: what is typed; `numbers` and `names` are lists with commas, `pair` is KEY=VALUE,
            `values` the same with values that may be JSON, `object` is JSON.
        aliases: what other tools call it.
        flag: its own name, where that is not made of the field's name.
        short: one letter.
        unit: what a value is, where `--help` shows it: TOKENS, FILE; of a list, of each value.
        words: what can be chosen; of names and texts, what the shell offers.
        synonyms: other tools' words for these.
        default: what happens unsaid, where the field's default does not tell; "" says nothing.
        is_case_sensitive: whether a choice has to be typed in its own case.
        is_repeated: whether it can be given several times.
        alone: what it means without a value; None where it needs one.
        in_environment: whether `EAGLEBENCH_<NAME>` is read.
        environment: variables beside that one.
        is_hidden: whether `--help` leaves it out.
        affects: what it decides. Runs that differ in what affects the work can't be compared, so
            that an option nobody thought about makes them incomparable, and never equal.
        needs: what has to hold for it to have an effect; the first that is missing is told.
        at_resume: whether it can stand beside `--resume`.
        is_many: whether several values, between commas, make a run of each (`setups.py`).
    """

    section: str
    help: str = ""
    kind: Kind = "text"
    aliases: tuple[str, ...] = ()
    flag: str | None = None
    short: str | None = None
    unit: str | None = None
    words: tuple[str, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    default: str | None = None
    is_case_sensitive: bool = True
    is_repeated: bool = False
    alone: str | None = None
    in_environment: bool = True
    environment: tuple[str, ...] = ()
    is_hidden: bool = False
    affects: Affects = "work"
    needs: tuple[Need, ...] = ()
    at_resume: bool = False
    is_many: bool = False

    @property
    def is_joined(self) -> bool:
        """Whether its lists, given one after another, make one list."""
        return self.is_repeated and self.kind in {"numbers", "names"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of the matrix.

    Attributes:
        option: its flag; a list of numbers, or of `words` where there is no `least`.
        least: smallest value; None where `words` alone are allowed.
        off: a number below that which is allowed too.
        words: texts that are allowed.
        spell: its part of a cell's name; None or nothing where the knobs are as by default. Axes
            that share a part (the draft shape) leave it to one of them.
        place: where that part stands; a new one comes last.
        to_knob: the value as the engine has it, where that differs from what is typed.
        knob: the engine's knob it sets; None where it decides over others.
    """

    option: Option
    least: int | None = None
    off: int | None = None
    words: tuple[str, ...] = ()
    spell: Callable[[EngineKnobs], str | None] = lambda _: None
    place: int = LAST
    to_knob: Callable[[AxisValue], AxisValue | None] = lambda value: value
    knob: str | None = None

    @property
    def listed(self) -> Option:
        """The option as it is typed: lists make a matrix."""
        kind: Kind = "names" if self.least is None else "numbers"
        return replace(self.option, kind=kind, words=self.words, is_repeated=True)

    def problem(self, name: str, value: object) -> str | None:
        """Why it can never have this value; None where it can."""
        flag = flag_of(name)
        if value in self.words:
            return None
        if self.least is None:
            return f"{flag} {value}; expected one of {', '.join(self.words)}"
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{flag} {value!r}; expected a whole number"
        return too_small(name, value, self.least, self.off)


OUTPUT_DIR = Option(
    section=OUTPUT,
    help="Where runs are kept.",
    default=DEFAULT_OUTPUT,
    short="-o",
    unit="FOLDER",
    aliases=("--result-dir", "--artifact-dir", "--outputs-dir"),
    environment=("EAGLEBENCH_DIR",),
    at_resume=True,
)
"""Of every command that writes or reads runs."""
Sources = Mapping[str, bool]
"""Options that were given, by name: whether they were typed."""
Notice = Callable[[str], None]
"""Is told one line about what is going on."""


def check_effects(
    needs: Mapping[str, Need],
    sources: Sources,
    situation: Any,
    labels: Mapping[str, str] | None = None,
    *,
    notice: Notice,
) -> None:
    """Hold every option that was given against what it needs.

    Args:
        needs: by option; what is not named here always has an effect.
        sources: the options that were given.
        situation: what the needs are asked with.
        labels: how options are typed, where their names don't tell.
        notice: is told of those that may be meant for other runs.

    Raises:
        UsageError: one that was typed is without effect; names all of them.
    """
    refused = []
    for name, is_typed in sources.items():
        need = needs.get(name, ALWAYS)
        if need.is_met(situation):
            continue
        said = f"{(labels or {}).get(name) or flag_of(name)} is without effect: {need.why_not}"
        if is_typed and need.is_fatal:
            refused.append(said)
        else:
            notice(f"warning: {said}")
    if refused:
        raise UsageError("; ".join(refused), hint="leave it out, or give what it belongs to")
