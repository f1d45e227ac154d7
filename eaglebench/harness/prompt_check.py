"""Whether the prompts of a cell can run, asked before anything is computed."""

from collections.abc import Sequence

from eaglebench.contracts.backend import Runtime
from eaglebench.contracts.knobs import EngineKnobs
from eaglebench.errors import UsageError
from eaglebench.harness.prompts import first_prompt, prompt_token_ids
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import Replay


def check_prompts(
    conversations: Sequence[Conversation],
    knobs: EngineKnobs,
    runtime: Runtime,
    replay: Replay | None,
    *,
    may_fail: bool,
) -> None:
    """Refuse prompts that can't run, with both numbers.

    Prompts of later chat turns are not known yet; one that does not fit becomes a failed row.

    Raises:
        UsageError: a prompt is empty, or does not fit and may not fail.
    """
    limit = _prompt_limit(knobs, runtime.info.context_length)
    for talk in conversations:
        prompts = [first_prompt(talk, runtime.tokenizer, replay)]
        if talk.kind == "raw" and replay is None:
            prompts += [
                prompt_token_ids(talk, turn, (), runtime.tokenizer)
                for turn in range(1, len(talk.turns))
            ]
        for prompt in prompts:
            _check_length(talk.question_id, len(prompt), limit, may_fail=may_fail)


def _check_length(question_id: str, num_tokens: int, limit: int, *, may_fail: bool) -> None:
    if num_tokens == 0:
        raise UsageError(f"question {question_id}: the prompt has no tokens; expected at least one")
    if num_tokens > limit and not may_fail:
        raise UsageError(
            f"question {question_id}: the prompt has {num_tokens} tokens; the pool and the "
            f"context leave room for {limit}",
            hint="raise --max-total-tokens or --context-length, or pass "
            "--continue-on-error to leave such questions out",
        )


def _prompt_limit(knobs: EngineKnobs, model_limit: int) -> int:
    """Longest prompt that leaves room for one verify step."""
    context = min(knobs.context_length or model_limit, model_limit)
    one_more = 1  # the first output token
    return min(context - one_more, knobs.max_total_tokens - knobs.num_draft_nodes - one_more)
