"""Every family with window layers in the engine, held against the forward of `transformers` itself.

Random targets in float32, prompts several windows long, trees that branch. Every row of logits that
the engine chooses from is compared with the last row of a plain forward over the tokens that lead
there: the end of a prompt, cold or behind a hit, and the root and every node of every draft tree.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.model.target import Target, TargetOutput
from eaglebench.records.observation import RequestObservation
from eaglebench.spec.proposal import ROOT, Proposal
from tests.checkpoints import publish_eagle1
from tests.engines import make_engine, make_knobs, make_request
from tests.hybrids import FAMILIES, WINDOW, make_hybrid
from tests.loaded_heads import load_head

VOCAB = 12
"""So small that a random head is right now and then."""
STEPS, TOPK, DRAFT_TOKENS = 4, 3, 31
"""All that can grow: 3 nodes, 9 on each of three more levels, and the root."""
TOLERANCE = 1e-4
Tokens = tuple[int, ...]


class RecordingTarget(Target):
    """A target that remembers the logits of its last forward."""

    last_logits: Tensor

    def forward(self, *args: Any, **options: Any) -> TargetOutput:
        """See `Target`."""
        output = super().forward(*args, **options)
        self.last_logits = output.logits
        return output


def make_prompts() -> list[Tokens]:
    """One, one that shares half of it, the first again, and one that goes on after it."""
    generator = torch.Generator().manual_seed(2)
    first, other = torch.randint(1, VOCAB, (2, 6 * WINDOW), generator=generator).tolist()
    half = 3 * WINDOW
    return [tuple(first), (*first[:half], *other[half:-3]), tuple(first), (*first, *other[:5])]


def make_family_engine(family: str, folder: Path, *, two_pools: bool, backend: str) -> Engine:
    """Two requests at a time, prompts in chunks, a random head, audited, pools full of NaN."""
    target = RecordingTarget(make_hybrid(family, vocab_size=VOCAB), attention_backend=backend)
    head = load_head(publish_eagle1(folder / "head", "sglang", vocab_size=VOCAB), target)
    knobs = make_knobs(
        steps=STEPS,
        eagle_topk=TOPK,
        num_draft_tokens=DRAFT_TOKENS,
        page_size=4,
        chunked_prefill_size=20,
        parallel=2,
    )
    return make_engine(
        knobs,
        models=Models(target, head),
        context_length=target.context_length,
        two_pools=two_pools,
    )


def root_paths(proposal: Proposal) -> list[Tokens]:
    """Tokens from the root, which is not among them, to the root and to every node."""
    paths: dict[int, Tokens] = {ROOT: ()}
    for node, token_id in enumerate(proposal.token_ids):
        paths[node] = (*paths[proposal.parent(node)], token_id)
    return list(paths.values())


class SeenStep(NamedTuple):
    """Tokens that lead to each row of logits, these, the trees verified, and who ended."""

    leading: list[Tokens]
    logits: Tensor
    trees: list[Proposal]
    ended: tuple[RequestObservation, ...]


def run_and_record(engine: Engine) -> Iterator[SeenStep]:
    """Run until all have ended; rows stand in the order of arrival, verified ones first."""
    assert isinstance(engine.models.target, RecordingTarget)
    while engine.has_work:
        verified = [r for r in engine.scheduler.running if not r.is_prefilling]
        trees = [request.proposal for request in verified]  # the step puts new ones in their place
        leading = [
            (*request.known_tokens.tolist(), *path)
            for request in verified
            for path in root_paths(request.proposal)
        ]
        prefilled = [r for r in engine._requests.values() if r not in verified]
        events = engine.step()
        leading += [r.request.prompt_token_ids for r in prefilled if r.request_id in events.new_ids]
        yield SeenStep(leading, engine.models.target.last_logits, trees, events.ended)


def plain_logits(model: PreTrainedModel, sequences: Sequence[Tokens]) -> Tensor:
    """[n, vocab]: the last row of a forward over each sequence; those of one length together."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, tokens in enumerate(sequences):
        by_length[len(tokens)].append(index)
    rows = torch.empty(len(sequences), VOCAB)
    for places in by_length.values():
        ids = torch.tensor([sequences[index] for index in places])
        with torch.inference_mode():
            rows[places] = model(ids).logits[:, -1]
    return rows


@pytest.mark.parametrize("backend", ["loop", "padded"])
@pytest.mark.parametrize("two_pools", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_node_sees_what_a_plain_forward_sees(
    family: str,
    two_pools: bool,  # a parameter
    backend: str,
    tmp_path: Path,
) -> None:
    """Chunked, cached, batched and through trees whose siblings share a position: within 1e-4."""
    torch.set_num_threads(1)
    engine = make_family_engine(family, tmp_path, two_pools=two_pools, backend=backend)
    model = make_hybrid(family, vocab_size=VOCAB)
    for number, prompt in enumerate(make_prompts()):
        engine.add(make_request(f"r{number}", prompt, max_new_tokens=10))

    steps = list(run_and_record(engine))

    for step in steps:
        expected = plain_logits(model, step.leading)
        torch.testing.assert_close(step.logits, expected, atol=TOLERANCE, rtol=0)
    trees = [tree for step in steps for tree in step.trees]
    assert max(int(tree.depths().max()) for tree in trees) == STEPS
    ended = [observation for step in steps for observation in step.ended]
    assert sum(o.counters.cached_tokens or 0 for o in ended) > 4 * WINDOW
    assert sum(o.counters.accepted or 0 for o in ended) > 0
