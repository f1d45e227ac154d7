"""The lines of a committed baseline: strict, sorted, integers only but for what people read.

{"kind": "header", ...}   which questions, which fingerprints, from which commit and why
{"kind": "cell", ...}     one a cell and arm: pooled counts, then lists by question
{"kind": "noise", ...}    the throughput ratio to `no-cache` and its scatter, where repeated
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from eaglebench.contracts.doubt import DoubtKind

BASELINE_SCHEMA = 1

Count = Annotated[int, Field(ge=0, strict=True)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class HeaderLine(_Line):
    """The first line."""

    kind: Literal["header"] = "header"
    schema_version: Annotated[int, Field(strict=True)]
    suite: str
    suite_version: Annotated[int, Field(ge=1, strict=True)]
    suite_sha256: str
    workload: dict[str, Any]
    exact: dict[str, Any]
    timing: dict[str, Any]
    al_definition: str
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
    untrusted: list[DoubtKind] | None = None

    @model_validator(mode="after")
    def _lists_agree(self) -> Self:
        lengths = {
            len(self.emitted_by_q),
            len(self.steps_by_q),
            len(self.out_sha_by_q),
            len(self.accept_sha_by_q),
            len(self.accept_sha_by_q if self.prompts_sha_by_q is None else self.prompts_sha_by_q),
        }
        if len(lengths) > 1:
            raise ValueError("the lists by question are not equally long")
        sums = {"emitted": sum(self.emitted_by_q), "verify_steps": sum(self.steps_by_q)}
        for name, total in sums.items():
            if self.counters.get(name) != total:
                raise ValueError(
                    f"{name} is {self.counters.get(name)}, its questions add to {total}"
                )
        return self


class NoiseLine(_Line):
    """How an arm's throughput ratio scattered."""

    kind: Literal["noise"] = "noise"
    cell_id: str
    arm: str
    log_ratio_ppm: Annotated[int, Field(strict=True)]
    pair_sd_ppm: Count
    pairs: Annotated[int, Field(ge=2, strict=True)]
    info_tok_s: Annotated[float, Field(gt=0)]


BaselineLine = Annotated[HeaderLine | CellLine | NoiseLine, Field(discriminator="kind")]
LINE: TypeAdapter[HeaderLine | CellLine | NoiseLine] = TypeAdapter(BaselineLine)
