"""Builders of snapshots for gate tests."""

from dataclasses import replace
from typing import Any

from eaglebench.records.snapshot import ArmCounts, ArmNoise, QuestionCounts, Snapshot
from eaglebench.stats.metrics import COUNTERS

QUIET = ArmNoise(log_ratio_ppm=50_000, pass_sd_ppm=4_000, passes=16, info_tok_s=40.0)


def make_question(
    name: str, emitted: int = 200, steps: int = 100, **changes: Any
) -> QuestionCounts:
    """One question."""
    values = {"output_sha": "0" * 8, "accept_sha": "1" * 8, "prompts_sha": "3" * 8}
    values |= {"drafts_sha": "4" * 8, **changes}
    return QuestionCounts(question_id=name, emitted=emitted, verify_steps=steps, **values)


def make_arm(
    arm: str = "radix",
    questions: tuple[QuestionCounts, ...] | None = None,
    cell_id: str = "page1",
    **changes: Any,
) -> ArmCounts:
    """One arm; its counters follow from the questions unless given."""
    chosen = questions or tuple(make_question(f"q{n}") for n in range(4))
    steps = sum(question.verify_steps for question in chosen)
    counters = dict.fromkeys(COUNTERS, 1000)
    counters |= {"emitted": sum(q.emitted for q in chosen), "verify_steps": steps}
    counters |= changes.pop("counters", {})
    values: dict[str, Any] = {
        "num_drafts": steps,
        "accepted_at": (steps * 6 // 10, steps * 4 // 10),
        "failed": 0,
        "noise": None if arm == "no-cache" else QUIET,
        **changes,
    }
    return ArmCounts(cell_id=cell_id, arm=arm, counters=counters, questions=chosen, **values)


def make_snapshot(*arms: ArmCounts, **changes: Any) -> Snapshot:
    """A snapshot of these arms."""
    values: dict[str, Any] = {
        "name": "run",
        "suite": "toy",
        "suite_version": 1,
        "suite_sha256": "a" * 64,
        "workload": {"max_new_tokens": 64, "dtype": "float32"},
        "exact": {"dtype": "float32", "torch": "2.13.0", "target_sha256": "b" * 64},
        "timing": {"cpu": "some"},
        "created_from": "abc",
        "reason": "because",
        "is_complete": True,
        **changes,
    }
    chosen = arms or (make_arm(), make_arm("no-cache"))
    return Snapshot(arms=tuple(chosen), **values)


def slower(question: QuestionCounts, steps: int) -> QuestionCounts:
    """The same output in more verify steps."""
    return replace(question, verify_steps=question.verify_steps + steps, accept_sha="2" * 8)
