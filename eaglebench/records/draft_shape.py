"""Which steps, top-k and draft tokens go together (draft tokens count the root)."""


def num_draft_nodes(num_draft_tokens: int) -> int:
    """Proposed tokens verified together, without the root.

    `num_draft_tokens` has SGLang's meaning, which counts the root (steps 2, top-k 1: 3). This is
    the only place that converts.
    """
    return num_draft_tokens - 1


def num_candidates(num_levels: int, topk: int) -> int:
    """Nodes that a tree of this depth and width grows in all, the root not counted.

    The first level has `topk` nodes; every later level grows `topk` candidates under each of the
    `topk` nodes kept.
    """
    return topk + (num_levels - 1) * topk**2 if num_levels else 0


def most_draft_tokens(num_steps: int, eagle_topk: int) -> int:
    """Most tokens a tree of this depth and width holds, the root included."""
    return 1 + num_candidates(num_steps, eagle_topk)


def chain_draft_tokens(num_steps: int) -> int:
    """Draft tokens of a chain: one a step, and the root."""
    return num_steps + 1


def usual_draft_tokens(num_steps: int, eagle_topk: int) -> int:
    """Draft tokens where none are given: a whole chain, or as many nodes as `topk` a level."""
    if eagle_topk == 1:
        return chain_draft_tokens(num_steps)
    return min(most_draft_tokens(num_steps, eagle_topk), 1 + num_steps * eagle_topk)


def chain_steps(num_draft_tokens: int) -> int:
    """Steps of a chain that holds so many draft tokens, the root included: a node a step."""
    return num_draft_nodes(num_draft_tokens)


def draft_shape_problem(num_steps: int, eagle_topk: int, num_draft_tokens: int) -> str | None:
    """Why these three don't work together, with the allowed range; None when they do."""
    given = (
        f"--num-steps {num_steps} --eagle-topk {eagle_topk} --num-draft-tokens {num_draft_tokens}"
    )
    if num_steps == 0:
        if num_draft_tokens == 1:
            return None
        return f"{given}: without steps there is only the root, so --num-draft-tokens must be 1"
    if eagle_topk == 1:
        wanted = chain_draft_tokens(num_steps)
        if num_draft_tokens == wanted:
            return None
        reason = f"{given}: top-k 1 drafts a chain of {num_steps}, so --num-draft-tokens must be "
        reason += f"{wanted} (it counts the root)"
        if num_draft_tokens > 1:
            reason += f"; for {num_draft_tokens} draft tokens take --num-steps "
            reason += str(chain_steps(num_draft_tokens))
        return reason
    most = most_draft_tokens(num_steps, eagle_topk)
    # The root and one node is the smallest tree.
    if 1 + 1 <= num_draft_tokens <= most:
        return None
    return f"{given}: --num-draft-tokens must be 2 to {most} (1 + topk + (steps - 1) * topk^2)"
