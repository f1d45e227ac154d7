"""Turns written down by hand, for tests whose numbers are worked out on paper."""

from dataclasses import replace
from typing import Any

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredRun, MeasuredTurn
from eaglebench.records.observation import RequestTimes, VerifyStep

PROMPT = tuple(range(100, 110))
"""Ten tokens, so that the first token of an answer stands at position 10."""
SURE = 5.0

PLACE: dict[str, Any] = {
    "request_id": "q/0",
    "run_id": "run",
    "cell_id": "page1",
    "arm": "radix",
    "pass_index": 0,
    "block": 0,
    "order_in_block": 0,
    "question_id": "q",
    "turn": 0,
    "category": "writing",
    "is_measured": True,
    "knobs": EngineKnobs(),
    "window": None,
    "dtype": "float32",
    "device": "cpu",
    "temperature": 0.0,
    "seed": 0,
    "times": RequestTimes(queue_s=0.0, prefill_s=0.0, decode_s=0.0, total_s=0.0),
}
"""Where a turn is that a test does not place, and what took no time."""


def make_step(
    position: int,
    drafted: tuple[int, ...],
    target: tuple[int, ...],
    accepted: int,
    **changes: Any,
) -> VerifyStep:
    """A verify step in which every choice was sure and nothing was cut."""
    values: dict[str, Any] = {
        "position": position,
        "drafted_ids": drafted,
        "target_ids": target,
        "accepted": accepted,
        "emitted": accepted + 1,
        "target_gaps": (SURE,) * len(target),
        "draft_gaps": (SURE,) * len(drafted),
    }
    return VerifyStep(**values | changes)


def make_turn(
    *steps: VerifyStep,
    output: tuple[int, ...] = (),
    counters: dict[str, int] | None = None,
    **changes: Any,
) -> MeasuredTurn:
    """A turn of these steps behind one token that prefill sampled; its counters follow from them.

    `output` are the tokens delivered; as many zeros as the steps say where it is left out.
    """
    emitted = sum(step.emitted for step in steps)
    accepted = sum(step.accepted for step in steps)
    delivered = output or (0,) * (emitted + 1)
    counted = (
        dict.fromkeys(Counters.names(), 0)
        | {"turns": 1}
        | {
            "prompt_tokens": len(PROMPT),
            "prefill_tokens_computed": len(PROMPT),
            "output_tokens": len(delivered),
            "prefill_sampled": 1,
            "verify_steps": len(steps),
            "num_drafts": sum(bool(step.drafted_ids) for step in steps),
            "drafted": sum(len(step.drafted_ids) for step in steps),
            "accepted": accepted,
            "bonus": len(steps),
            "overrun": accepted + len(steps) - emitted,
        }
    )
    turn = MeasuredTurn(
        **PLACE,
        prompt_token_ids=PROMPT,
        output_token_ids=delivered,
        accepted_per_step=tuple(step.accepted for step in steps),
        steps=steps,
        prefill_gap=SURE,
        counters=Counters(**counted | (counters or {})),
        finish_reason="length",
        error=None,
    )
    return replace(turn, **changes)


def make_measured_run(*turns: MeasuredTurn, blocks: tuple[MeasuredBlock, ...] = ()) -> MeasuredRun:
    """A finished run of these turns."""
    return MeasuredRun(
        run_id="run",
        status="done",
        started="2026-11-30",
        suite={"name": "toy", "version": 1},
        config={"max_new_tokens": 64},
        models={"dtype": "float32"},
        git=None,
        environment={},
        tau={},
        turns=turns,
        blocks=blocks,
    )
