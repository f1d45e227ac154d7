"""Whether the prompts of a cell can run, asked before anything is computed."""

from collections.abc import Sequence

from eaglebench.backends.seam import Runtime
from eaglebench.bench.prompts import first_prompt, prompt_token_ids
from eaglebench.errors import UsageError
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import Replay
from eaglebench.records.generation import TOO_LONG_HINT
from eaglebench.records.knobs import EngineKnobs


def check_prompts(
    conversations: Sequence[Conversation],
    knobs: EngineKnobs,
    runtime: Runtime,
    replay: Replay | None,
    *,
    max_new_tokens: int,
    may_fail: bool,
) -> None:
    """Refuse prompts that can't run, with both numbers.

    `max_new_tokens` counts where a turn says nothing of its own. Prompts of later chat turns are not known yet; one that does not fit becomes a failed row.

    Raises:
        UsageError: a prompt is empty, or does not fit and may not fail.
    """
    room = runtime.prompt_room(knobs)
    for talk in conversations:
        for turn, prompt in enumerate(_known_prompts(talk, runtime, replay)):
            if not prompt:
                raise UsageError(
                    f"question {talk.question_id}: the prompt has no tokens; expected at least one"
                )
            stored = (replay or {}).get((talk.question_id, turn))
            limit = talk.turns[turn].max_new_tokens or max_new_tokens
            limit = limit if stored is None else len(stored.output_token_ids)
            obstacle = room.obstacle(len(prompt), limit)
            if obstacle is not None and not may_fail:
                raise UsageError(
                    f"question {talk.question_id}: {obstacle}",
                    hint=f"{TOO_LONG_HINT}; --continue-on-error leaves such questions out",
                )


def _known_prompts(
    talk: Conversation, runtime: Runtime, replay: Replay | None
) -> list[tuple[int, ...]]:
    """Prompts of the leading turns that depend on no answer."""
    tokenizer = runtime.tokenizer
    later = range(1, len(talk.turns) if talk.kind == "raw" and replay is None else 1)
    return [
        first_prompt(talk, tokenizer, replay),
        *(prompt_token_ids(talk, turn, (), tokenizer) for turn in later),
    ]
