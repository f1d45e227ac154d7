"""A step may be broken off at any line: nothing that was finished is lost, nothing leaks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import eaglebench
from eaglebench.engine.engine import Engine
from eaglebench.kv.audit import audit
from eaglebench.records.observation import RequestObservation
from tests.counting_models import counting_models
from tests.engines import make_engine, make_knobs, make_request

ROOT = Path(eaglebench.__file__).parent
TRACED = tuple(str(ROOT / part) for part in ("engine", "kv", "spec"))
NUM_NEW = 9
POOL = 74
"""So that the third step preempts the youngest and ends the two others (see the scheduler's test)."""
Line = tuple[str, int]
Act = Callable[[Engine], object]


@contextmanager
def traced(on_line: Callable[[Line], None]) -> Iterator[None]:
    """Call `on_line` for every line that runs in the engine, the books and the drafting."""

    def local(frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return local

    def enter(frame: FrameType, _event: str, _arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(TRACED) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def make_running(num_steps: int) -> tuple[Engine, list[RequestObservation]]:
    """Three requests after so many steps, and what has ended by then."""
    knobs = make_knobs(steps=3, parallel=3, max_total_tokens=POOL)
    engine = make_engine(knobs, models=counting_models(), audit=False)
    for name, first in (("a", 100), ("b", 200), ("c", 300)):
        prompt = tuple(range(first, first + 16))
        engine.add(make_request(name, prompt, max_new_tokens=NUM_NEW))
    ended = [each for _ in range(num_steps) for each in engine.step().ended]
    return engine, ended


def take_step(engine: Engine) -> None:
    """One step."""
    engine.step()


def lines_of(num_steps: int, act: Act = take_step) -> dict[Line, int]:
    """Lines that an act runs after so many steps, and how often."""
    engine, _ = make_running(num_steps)
    counts: dict[Line, int] = {}

    def count(line: Line) -> None:
        counts[line] = counts.get(line, 0) + 1

    with traced(count):
        act(engine)
    return counts


def break_off(engine: Engine, line: Line, occurrence: int, act: Act = take_step) -> None:
    """Raise in an act where a line runs for the n-th time."""
    left = occurrence

    def strike(now: Line) -> None:
        nonlocal left
        left -= now == line
        if left == 0:
            left = -1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), traced(strike):
        act(engine)


def assert_whole(observation: RequestObservation) -> None:
    """Counts agree with what was delivered; who has ended has all of the answer."""
    counters = observation.counters
    first = {"a": 116, "b": 216, "c": 316}[observation.request_id]
    outputs = observation.output_token_ids
    assert outputs == tuple(range(first, first + len(outputs)))
    assert counters.output_tokens == len(outputs)
    assert counters.output_tokens == (counters.prefill_sampled or 0) + (counters.emitted or 0)
    assert counters.accepted == sum(observation.accepted_per_step or ())
    assert observation.finish_reason == ("length" if len(outputs) == NUM_NEW else "aborted")


def assert_conserved(engine: Engine) -> None:
    """The books are sound, and every page is free or the tree's."""
    storage = engine.storage
    audit(storage.pages, storage.cache, storage.geometry, [])
    assert storage.pages.num_free + storage.cache.num_evictable_pages == storage.pages.num_pages


@pytest.mark.parametrize("num_steps", [0, 2])
def test_after_an_interrupt_at_any_line_all_can_be_ended(num_steps: int) -> None:
    """In the step that admits, and in the one that preempts and ends: each line, its last time.

    Ending all raises nothing and reports every request once; pages are conserved; a new request
    runs to its end.
    """
    lines = lines_of(num_steps)
    assert len(lines) > 200
    for line, occurrence in lines.items():
        engine, ended = make_running(num_steps)
        break_off(engine, line, occurrence)

        ended += engine.abort_all()

        assert sorted(each.request_id for each in ended) == ["a", "b", "c"], line
        for each in ended:
            assert_whole(each)
        assert_conserved(engine)
        engine.add(make_request("new", range(400, 420), max_new_tokens=NUM_NEW))
        after = [each for _ in range(4) for each in engine.step().ended]
        assert [each.finish_reason for each in after] == ["length"], line
        assert_conserved(engine)


def test_after_an_interrupt_the_others_can_go_on() -> None:
    """Stepping on, without ending anybody, gives every request its whole answer, once."""
    lines = list(lines_of(2).items())
    for line, occurrence in lines[::5]:
        engine, ended = make_running(2)
        break_off(engine, line, occurrence)

        for _ in range(12):
            ended += engine.step().ended

        assert sorted(each.request_id for each in ended) == ["a", "b", "c"], line
        for each in ended:
            assert_whole(each)
            assert each.finish_reason == "length"
        assert not engine.has_work
        assert_conserved(engine)


def test_what_a_broken_step_had_ended_keeps_its_reason() -> None:
    """Interrupted where the step is told, after a and b have had their last tokens."""
    lines = lines_of(2)
    last = max(line for line in lines if line[0].endswith("engine/step_clock.py"))
    engine, _ = make_running(2)
    break_off(engine, last, lines[last])

    reasons = {each.request_id: each.finish_reason for each in engine.abort_all()}

    assert reasons == {"a": "length", "b": "length", "c": "aborted"}


def add_another(engine: Engine) -> None:
    """A fourth request."""
    engine.add(make_request("d", range(500, 516), max_new_tokens=NUM_NEW))


def abort_one(engine: Engine) -> None:
    """A request that decodes."""
    engine.abort("b")


@pytest.mark.parametrize(("act", "changed"), [(add_another, "d"), (abort_one, "b")])
def test_adding_and_aborting_may_be_broken_off_as_well(act: Act, changed: str) -> None:
    """At every line: the request itself is there or not, the others are told once, nothing leaks."""
    lines = lines_of(2, act)
    assert len(lines) > 30
    for line, occurrence in lines.items():
        engine, ended = make_running(2)
        break_off(engine, line, occurrence, act)

        ended += [each for _ in range(12) for each in engine.step().ended]

        names = sorted(each.request_id for each in ended if each.request_id != changed)
        assert names == [name for name in "abc" if name != changed], line
        assert sum(each.request_id == changed for each in ended) <= 1
        assert not engine.has_work
        assert_conserved(engine)


def test_a_reset_may_be_broken_off() -> None:
    """At every line: afterwards the engine is empty and works."""

    def end_all(engine: Engine) -> None:
        engine.abort_all()
        engine.reset()

    lines = {line: n for line, n in lines_of(2, end_all).items() if line[0].endswith("storage.py")}
    assert lines
    for line, occurrence in lines.items():
        engine, _ = make_running(2)
        break_off(engine, line, occurrence, end_all)

        engine.abort_all()
        engine.reset()
        add_another(engine)
        ended = [each for _ in range(5) for each in engine.step().ended]

        assert [each.finish_reason for each in ended] == ["length"], line
        assert_conserved(engine)
