"""The fields of a run's configuration, each with the option that sets it.

Models stand in `model_fields.py`, questions in `question_fields.py`. A field is declared there and
used where it matters: two files. What `help` says of it is what it does; `affects` says whether runs
that differ in it can be compared.
"""

from typing import Annotated, Literal, get_args

from pydantic import Field

from eaglebench.plan.axes import DRAFTS
from eaglebench.plan.matrix import MatrixSpec
from eaglebench.plan.model_fields import ModelFields, Positive
from eaglebench.plan.option import (
    CACHE,
    ENGINE,
    FIXED_PASSES,
    OUTPUT,
    SESSION,
    SPECULATION,
    Need,
    Option,
)
from eaglebench.records.knobs import ARMS, BASELINE_ARM

Share = Annotated[float, Field(gt=0, le=1)]
Algorithm = Literal["EAGLE3", "EAGLE", "NONE"]
HAS_RANGE = Need(FIXED_PASSES, lambda run: run.config.pass_range.least < run.config.pass_range.most)


class EngineFields(ModelFields):
    """Cache, engine and session of one run, as they are when nobody says anything."""

    algorithm: Annotated[
        Algorithm,
        Option(
            section=SPECULATION,
            help="EAGLE is for heads of EAGLE 1 and 2, NONE decodes plainly.",
            kind="choice",
            words=get_args(Algorithm),
            is_case_sensitive=False,
            default="the head's",
            aliases=("--speculative-algorithm", "--speculative-algo"),
        ),
    ] = "EAGLE3"
    aux_layer_ids: Annotated[
        tuple[int, ...] | None,
        Option(
            section=SPECULATION,
            unit="ID",
            help="States of the target that feed the head: id k is the one after k layers.",
            kind="numbers",
            default="as its config says",
            needs=(DRAFTS,),
        ),
    ] = None
    arms: Annotated[
        tuple[str, ...],
        Option(
            section=CACHE,
            unit="NAME",
            help="What is compared: radix, force-miss, no-cache, or a fault: unigram, "
            "no-lookahead, kv-reuse, seam-guess, seam-last.",
            kind="names",
            words=ARMS,
            is_repeated=True,
            affects="nothing",  # every cell and arm is compared with itself
        ),
    ] = ("radix", BASELINE_ARM)
    matrix: MatrixSpec = MatrixSpec()
    max_total_tokens: Annotated[
        Positive, Option(section=ENGINE, unit="SLOTS", help="Slots of the KV pools.", kind="int")
    ] = 16384
    swa_full_tokens_ratio: Annotated[
        Share,
        Option(
            section=ENGINE,
            unit="SHARE",
            help="Slots of sliding-window layers, as a share of those.",
            kind="float",
        ),
    ] = 0.8
    context_length: Annotated[
        Positive | None,
        Option(
            section=ENGINE,
            unit="TOKENS",
            help="Most tokens of a request.",
            kind="int",
            aliases=("--max-model-len",),
            default="the model's",
        ),
    ] = None
    seed: Annotated[
        int,
        Option(
            section=SESSION,
            help="Draws workloads and the order of arms.",
            kind="int",
            aliases=("--random-seed",),
        ),
    ] = 0
    warmup: Annotated[
        int,
        Field(ge=0),
        Option(
            section=SESSION,
            unit="PASSES",
            help="Passes over a prompt outside the suite.",
            kind="int",
            aliases=("--warmup-requests", "--num-warmups"),
            affects="time",
        ),
    ] = 1
    replay: Annotated[
        str | None,
        Option(
            section=SESSION,
            unit="RUN|FILE",
            help="Run or JSON Lines file whose tokens are taken as the target's choices.",
        ),
    ] = None
    continue_on_error: Annotated[
        bool,
        Option(
            section=SESSION,
            help="Record a question that can't run, or fails while it runs, and go on.",
            kind="flag",
            affects="nothing",
        ),
    ] = False
    profile: Annotated[
        bool,
        Option(
            section=SESSION,
            help="Write a torch profiler trace, trace.json in the run's folder.",
            kind="flag",
            affects="time",
        ),
    ] = False
    passes: Annotated[
        str,
        Option(
            section=SESSION,
            unit="LEAST[:MOST]",
            help="Passes over the questions, LEAST:MOST; times need 8.",
            aliases=("--pairs", "--num-runs", "--repeat", "--rounds"),
            environment=("EAGLEBENCH_PAIRS",),
            affects="time",
        ),
    ] = "1"
    precision: Annotated[
        float,
        Option(
            section=SESSION,
            unit="SHARE",
            help="Half-width to stop at, of two such runs' throughput ratios held together.",
            aliases=("--convergence-threshold",),
            default="1%",
            needs=(HAS_RANGE,),
            affects="time",
        ),
    ] = 0.01
    experiment_name: Annotated[
        str | None,
        Option(
            section=OUTPUT, unit="NAME", help="Part of the run's id.", short="-e", affects="nothing"
        ),
    ] = None
    labels: Annotated[
        dict[str, str],
        Option(
            section=OUTPUT,
            help="key=value, kept with the run.",
            kind="pair",
            flag="--label",
            aliases=("--metadata", "--tag"),
            affects="nothing",
        ),
    ] = Field(default_factory=dict)
