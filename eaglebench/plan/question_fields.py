"""The fields of a run's configuration that say what is asked, each with the option that sets it.

The others are in `run_fields.py`, which says what holds for both.
"""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from eaglebench.plan.model_fields import Positive
from eaglebench.plan.option import QUESTIONS, SAMPLING, Need, Option
from eaglebench.plan.run_fields import Share
from eaglebench.records.generation import SAMPLING_RULES, SamplingRule

PromptFormat = Literal["chat", "raw"]
VLLM_DRAFTS = (("greedy", "target-only"), ("probabilistic", "draft-distribution"))
"""vLLM's `draft_sample_method` as a sampling rule."""

DRAWS = Need("temperature 0 takes the likeliest token", lambda run: run.draws)
DRAWS_DRAFTS = Need(
    "it decides over drafts where tokens are drawn, and temperature is 0 or nothing is drafted",
    lambda run: run.draws and run.drafts,
)
ASKS_TEXTS = Need("the suite fixes its prompts", lambda run: run.asks_texts)
SETS_LENGTHS = Need("the suite fixes how long its answers are", lambda run: run.asks_texts)
HAS_FILE = Need("it belongs to --question-file", lambda run: run.config.question_file is not None)
FREE_ANSWERS = Need(
    "--replay ends every answer where the stored one ends",
    lambda run: run.config.replay is None,
    is_fatal=False,
)


class QuestionFields(BaseModel):
    """What is asked in one run, and how its answers are drawn, when nobody says anything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_questions: Annotated[
        Positive | None,
        Option(
            section=QUESTIONS,
            unit="QUESTIONS",
            help="Most questions.",
            kind="int",
            short="-n",
            aliases=("--num-prompts", "--limit"),
            default="the suite's",
        ),
    ] = None
    question_file: Annotated[
        str | None,
        Option(
            section=QUESTIONS,
            unit="FILE",
            help="JSON Lines or a JSON array (MT-Bench's shape, messages, ShareGPT, one prompt each), "
            "or hf:OWNER/NAME@SPLIT, instead of the suite's.",
            aliases=("--dataset-path", "--dataset"),
        ),
    ] = None
    question_fields: Annotated[
        dict[str, str],
        Option(
            section=QUESTIONS,
            help="OURS=THEIRS, where field names differ, such as turns=messages.",
            kind="pair",
            flag="--question-field",
            needs=(HAS_FILE,),
        ),
    ] = Field(default_factory=dict)
    max_new_tokens: Annotated[
        Positive,
        Option(
            section=QUESTIONS,
            unit="TOKENS",
            help="Most tokens of an answer.",
            kind="int",
            aliases=("--max-tokens", "--output-len"),
            needs=(SETS_LENGTHS, FREE_ANSWERS),
        ),
    ] = 256
    ignore_eos: Annotated[
        bool, Option(section=QUESTIONS, help="Go on after an end token.", kind="flag")
    ] = False
    stop: Annotated[
        tuple[str, ...],
        Option(
            section=QUESTIONS,
            help="Text that ends an answer.",
            is_repeated=True,
            in_environment=False,
        ),
    ] = ()
    system_prompt: Annotated[
        str | None,
        Option(section=QUESTIONS, help="Instead of the template's own.", needs=(ASKS_TEXTS,)),
    ] = None
    prompt_format: Annotated[
        PromptFormat,
        Option(
            section=QUESTIONS,
            help="raw feeds text without a chat template.",
            kind="choice",
            words=get_args(PromptFormat),
            needs=(ASKS_TEXTS,),
        ),
    ] = "chat"
    temperature: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False),
        Option(section=SAMPLING, unit="T", help="0 decodes greedily.", kind="float", is_many=True),
    ] = 0.0
    top_p: Annotated[
        Share,
        Option(
            section=SAMPLING,
            unit="SHARE",
            help="Draw among the likeliest.",
            kind="float",
            needs=(DRAWS,),
        ),
    ] = 1.0
    sampling_top_k: Annotated[
        int,
        Field(ge=0),
        Option(
            section=SAMPLING,
            unit="TOKENS",
            help="Draw among so many.",
            kind="int",
            default="all",
            needs=(DRAWS,),
        ),
    ] = 0
    sampling_rule: Annotated[
        SamplingRule,
        Option(
            section=SAMPLING,
            help="target-only accepts the head's likeliest tokens where the target draws them; "
            "draft-distribution draws drafts of a chain as well and accepts with min(1, p/q).",
            kind="choice",
            words=SAMPLING_RULES,
            synonyms=VLLM_DRAFTS,
            aliases=("--draft-sample-method",),
            needs=(DRAWS_DRAFTS,),
        ),
    ] = "target-only"
    accept_threshold_single: Annotated[
        Share,
        Option(
            section=SAMPLING,
            unit="SHARE",
            help="Accept a draft that is at least so likely; below 1 lossy.",
            kind="float",
            aliases=("--speculative-accept-threshold-single",),
            needs=(DRAWS_DRAFTS,),
        ),
    ] = 1.0
    accept_threshold_acc: Annotated[
        Share,
        Option(
            section=SAMPLING,
            unit="SHARE",
            help="Divide a draft's chance by this; below 1 lossy.",
            kind="float",
            aliases=("--speculative-accept-threshold-acc",),
            needs=(DRAWS_DRAFTS,),
        ),
    ] = 1.0
