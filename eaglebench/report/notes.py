"""Remarks a reader should not have to find out alone."""

from collections.abc import Sequence

from eaglebench.report.rows import Row

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
