"""The fields of a run's configuration that say what is loaded, and by which engine.

The others are in `run_fields.py`, which says what holds for all of them.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from eaglebench.plan.axes import DRAFTS
from eaglebench.plan.draft_config import HELP as DRAFT_CONFIG_HELP
from eaglebench.plan.option import MODELS, Option
from eaglebench.records.models import DEFAULT_BACKEND

Positive = Annotated[int, Field(ge=1)]
Dtype = Literal["float64", "float32", "bfloat16", "float16"]
DEFAULT_MODEL = "smollm2-135m"


class ModelFields(BaseModel):
    """Models and engine of one run, as they are when nobody says anything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    model: Annotated[
        str,
        Option(
            section=MODELS,
            unit="NAME",
            help="Target: asset name, folder or Hub id.",
            aliases=("--model-path", "--target-model"),
            is_many=True,
        ),
    ] = DEFAULT_MODEL
    backend: Annotated[
        str,
        Option(
            section=MODELS,
            unit="NAME",
            words=("embedded", "vllm"),
            help="Which engine runs it (docs/engines.md).",
            is_many=True,
        ),
    ] = DEFAULT_BACKEND
    engine_python: Annotated[
        str | None,
        Option(
            section=MODELS,
            unit="FILE",
            help="Python of the environment that an engine outside is installed in.",
            affects="nothing",
        ),
    ] = None
    engine_args: Annotated[
        dict[str, Any],
        Option(
            section=MODELS,
            help="KEY=VALUE for that engine itself; a value may be JSON.",
            kind="values",
            flag="--engine-arg",
        ),
    ] = Field(default_factory=dict)
    draft_model: Annotated[
        str | None,
        Option(
            section=MODELS,
            unit="NAME",
            help="EAGLE head; by default the one that belongs to the target.",
            aliases=("--speculative-draft-model-path", "--speculative-draft-model"),
            needs=(DRAFTS,),
            is_many=True,
        ),
    ] = None
    draft_config: Annotated[
        dict[str, Any] | None,
        Option(
            section=MODELS,
            help=DRAFT_CONFIG_HELP,
            kind="values",
            needs=(DRAFTS,),
        ),
    ] = None
    dtype: Annotated[
        Dtype | None,
        Option(
            section=MODELS,
            unit="NAME",
            help="float64, float32, bfloat16 or float16.",
            words=get_args(Dtype),
            default="float32 on a CPU, bfloat16 on a GPU",
            affects="nothing",  # what it was settled to does, and stands with the models
            is_many=True,
        ),
    ] = None
    device: Annotated[
        str,
        Option(
            section=MODELS,
            unit="NAME",
            words=("cpu", "cuda"),
            help="cpu or cuda.",
            affects="time",
        ),
    ] = "cpu"
    attention_backend: Annotated[
        str,
        Option(
            section=MODELS,
            unit="NAME",
            words=("auto", "loop", "padded"),
            help="How attention is computed: row by row, or rows padded to one batch.",
            default="auto: loop on a CPU, padded elsewhere",
            affects="time",
            is_many=True,
        ),
    ] = "auto"
    num_threads: Annotated[
        Positive | None,
        Option(section=MODELS, unit="THREADS", help="CPU threads.", kind="int", affects="time"),
    ] = None
    trust_remote_code: Annotated[
        bool,
        Option(
            section=MODELS,
            help="Run Python code that comes with a model.",
            kind="flag",
            affects="nothing",
        ),
    ] = False
