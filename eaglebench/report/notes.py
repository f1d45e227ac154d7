"""Remarks a reader should not have to find out alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from eaglebench.report.rows import Row

MEGABYTE = 1_000_000
BIGRAM_NEEDS = 1
"""A bigram needs one token past its slots."""


def run_notes(
    rows: Sequence[Row], page_sizes: Sequence[int], runtime_warnings: Sequence[str]
) -> list[str]:
    """Notes about hits that never came, failures and faults."""
    notes = list(runtime_warnings)
    for row in rows:
        if row.arm == "radix" and row.counts.turns and not row.counts.cached_tokens:
            smallest = ", ".join(f"{p + BIGRAM_NEEDS} tokens at page size {p}" for p in page_sizes)
            notes.append(
                f"{row.cell_id} radix: the prefix cache never hit; prompts must share at least "
                f"{smallest}"
            )
        if row.num_failed:
            notes.append(f"{row.cell_id} {row.arm}: {row.num_failed} turns failed and are left out")
        if row.difference is not None:
            faults = row.difference.count("draft-state") + row.difference.count("target-state")
            if faults:
                notes.append(
                    f"{row.cell_id} {row.arm}: {faults} turns part from no-cache where the choice "
                    "was clear: a fault, not a near-tie"
                )
    return notes


def window_notes(models: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """What the pool of window layers saves; nothing where there are none."""
    window = models.get("window")
    if not window:
        return []
    num_slots = int(config["max_total_tokens"])
    ratio = float(config.get("swa_full_tokens_ratio", 1.0))
    whole = num_slots * int(models["kv_bytes_per_slot"])
    saved = int(num_slots * (1 - ratio)) * int(models["window_bytes_per_slot"])
    note = (
        f"window layers see {window} positions and have {ratio:.0%} of the slots: KV pools take "
        f"{(whole - saved) / MEGABYTE:.0f} MB instead of {whole / MEGABYTE:.0f} MB"
    )
    return [note]


def sampling_notes(config: Mapping[str, Any]) -> list[str]:
    """A word on acceptance thresholds below 1; nothing where there are none, or nothing drafts."""
    names = ("accept_threshold_single", "accept_threshold_acc")
    below = [f"{name} {config[name]:g}" for name in names if config.get(name, 1) < 1]
    if not below or config.get("algorithm") == "NONE":
        return []
    if not config.get("temperature"):
        return [f"{', '.join(below)}: ignored, since temperature 0 verifies greedily, as in SGLang"]
    return [f"lossy: output does not follow the target's distribution ({', '.join(below)})"]
