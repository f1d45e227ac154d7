"""The lines of a committed baseline: strict, sorted, integers only but for what people read.

{"kind": "header", ...}   which questions, which fingerprints, from which commit and why
{"kind": "cell", ...}     one a cell and arm: pooled counts, then lists by question
{"kind": "noise", ...}    the throughput ratio to `no-cache` and its scatter, where repeated
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from eaglebench.records.doubt import DoubtKind
from eaglebench.records.snapshot import AL_DEFINITION
from eaglebench.store.records import MOST

BASELINE_SCHEMA = 2

MOST_PPM = 20_000_000
"""Logs of ratios: nothing is 400 million times as fast as something else."""
Count = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class HeaderLine(_Line):
    """The first line."""

    kind: Literal["header"] = "header"
    schema_version: Annotated[int, Field(strict=True)]
    suite: str
    suite_version: Annotated[int, Field(ge=1, le=MOST, strict=True)]
    suite_sha256: str
    workload: dict[str, Any]
    exact: dict[str, Any]
    timing: dict[str, Any]
    al_definition: Annotated[str, Field(pattern=f"^{AL_DEFINITION}$")]
    created_from: str
    reason: str
    questions: list[str]
    questions_sha256: str | None = None


class CellLine(_Line):
    """One cell and arm; the lists are as long as `questions` and in its order."""

    kind: Literal["cell"] = "cell"
    cell_id: str
    arm: str
    counters: dict[str, Count]
    num_drafts: Count
    accepted_at: list[Count]
    failed: Count
    questions: list[str] | None = None
    emitted_by_q: list[Count]
    steps_by_q: list[Count]
    out_sha_by_q: list[Digest]
    accept_sha_by_q: list[Digest]
    prompts_sha_by_q: list[Digest] | None = None
    drafts_sha_by_q: list[Digest] | None = None
    untrusted: list[DoubtKind] | None = None

    @model_validator(mode="after")
    def _lists_agree(self) -> Self:
        lengths = {
            len(self.emitted_by_q),
            len(self.steps_by_q),
            len(self.out_sha_by_q),
            len(self.accept_sha_by_q),
            *(len(d) for d in (self.prompts_sha_by_q, self.drafts_sha_by_q) if d is not None),
        }
        if len(lengths) > 1:
            raise ValueError("the lists by question are not equally long")
        sums = {"emitted": sum(self.emitted_by_q), "verify_steps": sum(self.steps_by_q)}
        for name, total in sums.items():
            if self.counters.get(name) != total:
                raise ValueError(
                    f"{name} is {self.counters.get(name)}, its questions add to {total}"
                )
        for emitted, steps in zip(self.emitted_by_q, self.steps_by_q, strict=True):
            if emitted and not steps:
                raise ValueError(f"a question has {emitted} tokens of no verify step")
        return self

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        """The identities of `records/observation.py`, as far as the line holds their terms."""
        counts = {"accepted_at": sum(self.accepted_at), **self.counters}
        steps = counts["verify_steps"]
        if self.num_drafts > steps or counts.get("num_drafts", self.num_drafts) != self.num_drafts:
            raise ValueError(
                f"num_drafts is {self.num_drafts}, its counter {counts.get('num_drafts')}, of "
                f"{steps} verify steps"
            )
        falling = sorted([self.num_drafts, *self.accepted_at], reverse=True)
        if falling != [self.num_drafts, *self.accepted_at]:
            raise ValueError(
                f"accepted_at {self.accepted_at} of {self.num_drafts} drafts: a later position "
                "can't be accepted more often"
            )
        accepted = counts.get("accepted")
        if self.accepted_at and accepted is not None and accepted != counts["accepted_at"]:
            raise ValueError(f"accepted is {accepted}, accepted_at adds to {counts['accepted_at']}")
        if accepted is not None and accepted > counts.get("drafted", accepted):
            raise ValueError(f"accepted is {accepted} of {counts['drafted']} drafted")
        if accepted is not None and "overrun" in counts:
            emitted = accepted + steps - counts["overrun"]
            if emitted != counts["emitted"]:
                raise ValueError(
                    f"emitted is {counts['emitted']}; accepted + verify_steps - overrun is {emitted}"
                )
        if counts["emitted"] > counts.get("output_tokens", counts["emitted"]):
            raise ValueError(f"emitted is {counts['emitted']} of {counts['output_tokens']} tokens")
        return self


class NoiseLine(_Line):
    """How an arm's throughput ratio scattered."""

    kind: Literal["noise"] = "noise"
    cell_id: str
    arm: str
    log_ratio_ppm: Annotated[int, Field(ge=-MOST_PPM, le=MOST_PPM, strict=True)]
    pass_sd_ppm: Annotated[int, Field(ge=0, le=MOST_PPM, strict=True)]
    passes: Annotated[int, Field(ge=2, le=MOST, strict=True)]
    runs: Annotated[int, Field(ge=1, le=MOST, strict=True)] = 1
    run_sd_ppm: Annotated[int, Field(ge=0, le=MOST_PPM, strict=True)] | None = None
    info_tok_s: Annotated[float, Field(gt=0, strict=True)]


BaselineLine = Annotated[HeaderLine | CellLine | NoiseLine, Field(discriminator="kind")]
LINE: TypeAdapter[HeaderLine | CellLine | NoiseLine] = TypeAdapter(BaselineLine)
