"""Write a reference file for a target and its head: plain greedy answers, and what is accepted.

    python -m tools.reference.make TARGET HEAD QUESTIONS > reference.jsonl

TARGET and HEAD are folders, QUESTIONS a file in MT-Bench's shape. `transformers` generates each
answer without speculation; one forward of the target over prompt and answer then gives the states
that feed the head, which is computed from scratch at every boundary between verify steps. Nothing
of the engine is used, so that `tests/integration/test_reference.py` can hold the engine against it.

A line a turn: `question_id`, `turn`, `prompt_token_ids`, `output_token_ids`, `accepted_per_step` by
number of proposed tokens, and the smallest lead of any choice of the draft and of the target.
Accepted counts end with the answer; prefill chooses its first token.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from tools.reference.head import Draft, ReferenceHead

MOST_PROPOSED = 5


class Drafts:
    """Drafts behind each number of known tokens of one answer, made when first asked for."""

    def __init__(self, head: ReferenceHead, known_ids: Tensor, states: Tensor) -> None:
        self.head, self.known_ids, self.states = head, known_ids, states
        self.made: dict[int, Draft] = {}

    def behind(self, num_known: int) -> Draft:
        """The longest draft at a boundary; a shorter one is its beginning."""
        if num_known not in self.made:
            ids, states = self.known_ids[:num_known], self.states[: num_known - 1]
            self.made[num_known] = self.head.propose(ids, states, MOST_PROPOSED)
        return self.made[num_known]

    @property
    def smallest_gap(self) -> float | None:
        """The closest call of all drafts that were made."""
        return min((gap for draft in self.made.values() for gap in draft.gaps), default=None)


def accepted_per_step(drafts: Drafts, num_prompt: int, num_proposed: int) -> list[int]:
    """Drafts that agree with the answer, by verify step, when so many are proposed at a time."""
    ids = drafts.known_ids.tolist()
    counts: list[int] = []
    num_known = num_prompt + 1  # prefill chose the first token of the answer
    while num_known < len(ids):
        proposed = drafts.behind(num_known).token_ids[:num_proposed]
        agree = [a == b for a, b in zip(proposed, ids[num_known:], strict=False)]
        counts.append([*agree, False].index(False))
        num_known += counts[-1] + 1  # the target's own token
    return counts


class ReferenceTarget:
    """The target as `transformers` runs it."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self.model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            str(folder), dtype=dtype
        ).eval()
        self.num_layers: int = self.model.config.num_hidden_layers

    def prompt_ids(self, messages: list[dict[str, str]]) -> list[int]:
        """A conversation, ready for the assistant's turn."""
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def answer_ids(self, prompt_ids: list[int], max_new_tokens: int) -> list[int]:
        """Plain greedy decoding."""
        prompt = torch.tensor([prompt_ids])
        generated: Any = self.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=max_new_tokens,
            do_sample=False,
        )
        ids: list[int] = generated[0, len(prompt_ids) :].tolist()
        return ids

    @property
    def embedding(self) -> Tensor:
        """[vocab, hidden]."""
        weight: Tensor = self.model.get_input_embeddings().weight.detach()
        return weight

    def states(self, known_ids: Tensor, layer_ids: list[int] | None) -> tuple[Tensor, Tensor]:
        """[n, num_aux * hidden] states after so many layers, and [n, vocab] logits."""
        layer_ids = layer_ids or [2, self.num_layers // 2, self.num_layers - 3]
        if max(layer_ids) >= self.num_layers:
            raise ValueError(f"states {layer_ids}: the last one is normed in `transformers`' list")
        output = self.model(known_ids[None], output_hidden_states=True, use_cache=False)
        states = torch.cat([output.hidden_states[index][0] for index in layer_ids], dim=-1)
        return states, output.logits[0]


@torch.inference_mode()
def reference_turn(
    target: ReferenceTarget, head: ReferenceHead, prompt_ids: list[int], max_new_tokens: int
) -> dict[str, Any]:
    """Answer and accepted counts of one prompt."""
    answer = target.answer_ids(prompt_ids, max_new_tokens)
    known_ids = torch.tensor([*prompt_ids, *answer])
    states, logits = target.states(known_ids, head.aux_layer_ids)
    choices = logits[len(prompt_ids) - 1 : -1].topk(2).values
    drafts = Drafts(head, known_ids, states)
    accepted = {
        str(k): accepted_per_step(drafts, len(prompt_ids), k) for k in range(1, MOST_PROPOSED + 1)
    }
    return {
        "prompt_token_ids": prompt_ids,
        "output_token_ids": answer,
        "accepted_per_step": accepted,
        "min_draft_top2_gap": drafts.smallest_gap,
        "min_target_top2_gap": float((choices[:, 0] - choices[:, 1]).min()),
    }


def reference_lines(
    target: ReferenceTarget,
    head: ReferenceHead,
    questions: list[dict[str, Any]],
    max_new_tokens: int,
) -> Iterator[dict[str, Any]]:
    """A line for every turn; a later turn's prompt holds the text of the answers before it."""
    for question in questions:
        messages: list[dict[str, str]] = []
        for turn, text in enumerate(question["turns"]):
            messages.append({"role": "user", "content": text})
            prompt_ids = target.prompt_ids(messages)
            line = reference_turn(target, head, prompt_ids, max_new_tokens)
            yield {"question_id": question["question_id"], "turn": turn, **line}
            answer = target.tokenizer.decode(line["output_token_ids"], skip_special_tokens=True)
            messages.append({"role": "assistant", "content": answer})


def main() -> None:
    """Print the lines; progress goes to standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--num-questions", type=int, default=10)
    parser.add_argument("--max-new-tokens", type=int, default=128)
    options = parser.parse_args()
    target = ReferenceTarget(options.target)
    head = ReferenceHead(options.head, target.embedding)
    read = [json.loads(line) for line in options.questions.read_text().splitlines() if line]
    questions = read[: options.num_questions]
    num_turns = sum(len(question["turns"]) for question in questions)
    for done, line in enumerate(
        reference_lines(target, head, questions, options.max_new_tokens), start=1
    ):
        print(json.dumps(line), flush=True)
        counts = {k: sum(steps) for k, steps in line["accepted_per_step"].items()}
        print(
            f"{done}/{num_turns} question {line['question_id']} turn {line['turn']}: "
            f"{len(line['output_token_ids'])} tokens, accepted by number proposed {counts}",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
