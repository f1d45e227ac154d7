"""Remarks a reader should not have to find out alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import base_arm
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.words import doing
from eaglebench.report.phrases import several
from eaglebench.report.rows import Row
from eaglebench.stats.acceptance import acceptance_by_context, by_arm, pool

MEGABYTE = 1_000_000
BIGRAM_NEEDS = 1
"""A bigram needs one token past its slots."""


def run_notes(
    rows: Sequence[Row], page_sizes: Sequence[int], runtime_warnings: Sequence[str]
) -> list[str]:
    """Notes about hits that never came, and faults."""
    notes = list(runtime_warnings)
    for row in rows:
        if row.arm == "radix" and row.counts.turns and row.counts.cached_tokens == 0:
            smallest = ", ".join(f"{p + BIGRAM_NEEDS} tokens at page size {p}" for p in page_sizes)
            notes.append(
                f"{row.cell_id} radix: the prefix cache never hit; prompts must share at least "
                f"{smallest}"
            )
        if row.difference is not None and base_arm(row.arm) not in FAULTS:
            faults = row.difference.count("draft-state") + row.difference.count("target-state")
            if faults:
                notes.append(
                    f"{row.cell_id} {row.arm}: {doing(faults, 'turn', 'part')} from no-cache where the "
                    "choice was clear: a fault, not a near-tie"
                )
    return notes


def pressure_notes(turns: Sequence[MeasuredTurn]) -> list[str]:
    """Preemptions and evictions of the first pass, a line a cell; nothing where there were none.

    What preempted requests found again is told beside them, where it was recorded.
    """
    cells: dict[str, list[str]] = {}
    for (cell_id, arm), mine in by_arm(turn for turn in turns if turn.pass_index == 0).items():
        counts = pool(mine)
        preempted, evicted = counts.preemptions, counts.evictions
        told = [f"{several(preempted, 'preemption')}{_resumed(mine)}"] if preempted else []
        told += [several(evicted, "evicted page")] if evicted else []
        if told:
            cells.setdefault(cell_id, []).append(f"{arm} {', '.join(told)}")
    return [f"{cell_id}: {'; '.join(arms)}" for cell_id, arms in cells.items()]


def _resumed(turns: Sequence[MeasuredTurn]) -> str:
    """Tokens found again on resume; silence where nobody counted them."""
    counted = [n for turn in turns if (n := turn.counters.resumed_tokens) is not None]
    return f" ({sum(counted)} tokens found again)" if counted else ""


def precision_notes(rows: Sequence[Row], dtype: str) -> list[str]:
    """Where choices within the noise of matrix shapes are no rare accident."""
    close = [row.difference.close for row in rows if row.difference is not None]
    if not any(each.are_many for each in close):
        return []
    sides = {"the target's": [c.target for c in close], "the head's": [c.draft for c in close]}
    most = {
        name: max((n for n in found if n is not None), default=0.0) for name, found in sides.items()
    }
    told = " and ".join(f"{share:.1%} of {name} choices" for name, share in most.items())
    note = (
        f"in {dtype} up to {told} lie within the noise of matrix shapes: a near-tie here may hide "
        "a small fault, which --dtype float32 would show"
    )
    return [note]


def time_notes(
    rows: Sequence[Row], turns: Sequence[MeasuredTurn], least: float = 0.05
) -> list[str]:
    """What the split of the throughput passes over: steps that prefill and verify, donors' turns."""
    cells: dict[str, list[str]] = {}
    for row in rows:
        if row.speed is not None and row.speed.mixed_share >= least:
            cells.setdefault(row.cell_id, []).append(f"{row.arm} {row.speed.mixed_share:.0%}")
    notes = [
        f"{cell_id}: steps that prefilled and verified at once took {', '.join(arms)} of the time; "
        "no step rate and no decode share counts them"
        for cell_id, arms in cells.items()
    ]
    donors = {(t.question_id, t.turn) for t in turns if not t.is_measured}
    if donors:
        notes.append(
            f"token/s and splits count {several(len(donors), 'turn')} that only prepared others; "
            "lengths and counters leave them out"
        )
    return notes


def occupancy_notes(rows: Sequence[Row], blocks: Sequence[MeasuredBlock]) -> list[str]:
    """How full batches were, a line a cell; cells that run one request at a time have none."""
    sizes = {block.cell_id: block.parallel for block in blocks}
    cells: dict[str, list[str]] = {}
    for row in rows:
        if row.occupancy is not None and (sizes.get(row.cell_id) or 1) > 1:
            cells.setdefault(row.cell_id, []).append(f"{row.arm} {row.occupancy:.0%}")
    return [
        f"{cell_id}: occupancy {', '.join(arms)} of {sizes[cell_id]} requests at a time"
        for cell_id, arms in cells.items()
    ]


def context_notes(turns: Sequence[MeasuredTurn]) -> list[str]:
    """Acceptance by length of context, where there are several; arms that agree share a line.

    Of a run over several cells this would be a page; `show` on a run of one cell has it.
    """
    first = [turn for turn in turns if turn.pass_index == 0]
    if len({turn.cell_id for turn in first}) > 1:
        return []
    arms: dict[tuple[str, str], list[str]] = {}
    for (cell_id, arm), mine in by_arm(first).items():
        classes = acceptance_by_context(mine)
        if len(classes) > 1:
            shown = ", ".join(f"{c.acceptance_length:.3f} below {c.below}" for c in classes)
            arms.setdefault((cell_id, shown), []).append(arm)
    return [
        f"{cell_id} {', '.join(names)}: acceptance length by tokens of context: {shown}"
        for (cell_id, shown), names in arms.items()
    ]


def head_notes(models: Mapping[str, Any], turns: Sequence[MeasuredTurn]) -> list[str]:
    """Where the head fell silent because its positions had ended."""
    limit = models.get("draft_positions")
    if limit is None:
        return []
    steps = [step for turn in turns if turn.knobs.draft.num_steps for step in turn.steps]
    last_position = limit - 1
    silent = sum(step.position >= last_position and not step.drafted_ids for step in steps)
    if not silent:
        return []
    note = (
        f"the head was made for {limit} positions and proposes nothing past them: {silent} of "
        f"{len(steps)} verify steps carried no draft for that reason"
    )
    return [note]


def text_notes(models: Mapping[str, Any], turns: Sequence[MeasuredTurn]) -> list[str]:
    """Delivered ids that the tokenizer does not know; they show as the replacement character."""
    size = models.get("tokenizer_size")
    if size is None:
        return []
    count = sum(token_id >= size for turn in turns for token_id in turn.output_token_ids)
    if not count:
        return []
    note = (
        f"{count} delivered tokens have no text: the model knows {models.get('vocab_size')} ids, its "
        f"tokenizer {size}"
    )
    return [note]


def window_notes(models: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """What the pool of window layers saves; nothing where there are none or windows are set."""
    window = models.get("window")
    if not window or "sliding_window" in _axes(config.get("matrix") or {}):
        return []
    num_slots, slot_bytes = config.get("max_total_tokens"), models.get("kv_bytes_per_slot")
    if num_slots is None or slot_bytes is None:
        return []
    ratio = config.get("swa_full_tokens_ratio", 1.0)
    whole = num_slots * slot_bytes
    saved = int(num_slots * (1 - ratio)) * models.get("window_bytes_per_slot", 0)
    note = (
        f"window layers see {window} positions and have {ratio:.0%} of the slots: KV pools take "
        f"{(whole - saved) / MEGABYTE:.0f} MB instead of {whole / MEGABYTE:.0f} MB"
    )
    return [note]


def sampling_notes(config: Mapping[str, Any]) -> list[str]:
    """A word on acceptance thresholds below 1; nothing where there are none, or nothing drafts."""
    names = ("accept_threshold_single", "accept_threshold_acc")
    values = {name: config.get(name) for name in names}
    below = [
        f"{name} {value:g}" for name, value in values.items() if value is not None and value < 1
    ]
    if not below or config.get("algorithm") == "NONE":
        return []
    if not config.get("temperature"):
        return [f"{', '.join(below)}: ignored, since temperature 0 verifies greedily, as in SGLang"]
    return [f"lossy: output does not follow the target's distribution ({', '.join(below)})"]


def _axes(matrix: Mapping[str, Any]) -> set[str]:
    """Names of everything that a matrix sets."""
    groups = [matrix.get("axes", {}), *matrix.get("zip", ()), *matrix.get("include", ())]
    return {name for group in groups for name in group}
