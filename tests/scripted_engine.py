"""A worker that answers as vLLM's does, without vLLM: the tokens are a hash of what went before.

`FAULT` in its environment makes it `die` or `hang` in the fourth answer, `babble` no JSON, `refuse`
to open, or `miscount` its accepted drafts.
"""

import json
import os
import sys
import time
from typing import Any
from zlib import crc32

LETTERS = b"abcdefghijklmnopqrstuvwxyz "
FAULT = os.environ.get("FAULT", "")
Json = dict[str, Any]


def after(tokens: list[int]) -> int:
    """The token that follows these."""
    return LETTERS[crc32(bytes(token % 256 for token in tokens)) % len(LETTERS)]


def shared(one: list[int], other: list[int]) -> int:
    """Leading tokens in common."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def answered(asked: Json, num_drafts: int, cached: int) -> Json:
    """A request from its prompt to its last token; the last draft of every step is wrong."""
    prompt, known = list(asked["prompt"]), list(asked["prompt"])
    rows: list[Json] = [
        {
            "start": cached,
            "end": len(prompt),
            "known": len(prompt),
            "is_prefill": True,
            "drafted": [],
            "sampled": [after(known)],
            "leads": [],
            "successor": after(known),
        }
    ]
    known.append(after(known))
    while len(known) - len(prompt) < asked["max_tokens"]:
        path = list(known)
        for _ in range(num_drafts):
            path.append(after(path))
        drafted = path[len(known) :]
        if drafted:
            drafted[-1] = 1
        sampled = [*drafted[:-1], after(known + drafted[:-1])]
        rows.append(
            {
                "start": len(known) - 1,
                "end": len(known) + num_drafts,
                "known": len(known),
                "is_prefill": False,
                "drafted": drafted,
                "sampled": sampled,
                "leads": [2.0] * num_drafts,
                "successor": None,
            }
        )
        known += sampled
    output = known[len(prompt) :][: asked["max_tokens"]]
    verified = rows[1:]
    accepted = [len(row["sampled"]) - 1 for row in verified]
    if FAULT == "miscount" and accepted:
        accepted[-1] += 1
    return {
        "id": asked["id"],
        "output": output,
        "finish": "length",
        "cached": cached,
        "preemptions": 0,
        "accepted": accepted if num_drafts else None,
        "drafted": [num_drafts] * len(verified) if num_drafts else None,
        "leads": [3.0] * len(output),
        "sizes": [1] + [len(row["sampled"]) for row in verified],
        "rows": rows,
        "times": [1.0, 1.0, 1.5, 2.0],
    }


def main() -> None:
    """Answer until standard input ends."""
    arguments: Json = {}
    queued: list[Json] = []
    seen: list[list[int]] = []
    number = 0
    for line in sys.stdin:
        asked = json.loads(line)
        operation = asked.pop("op")
        number += operation == "run"
        if operation == "add":
            queued.append(asked)
            continue
        if number == 4 and FAULT == "die":
            sys.stderr.write("out of memory\n")
            sys.exit(7)
        if number == 4 and FAULT == "hang":
            time.sleep(60)
        answer: Json = {"ok": True}
        if operation == "about":
            answer = {"vllm": "0.32.0", "torch": "2.13.0"}
        elif operation == "open":
            arguments = asked
            if FAULT == "refuse":
                answer = {"error": "ValueError: no such block size"}
        elif operation == "reset":
            seen.clear()
        elif operation == "abort":
            queued.clear()
        elif operation == "run":
            asked = queued.pop(0)
            drafts = (arguments.get("speculative_config") or {}).get("num_speculative_tokens", 0)
            size, cached = arguments["block_size"], 0
            if arguments["enable_prefix_caching"] and not asked["skips_cache"]:
                common = [shared(asked["prompt"], each) for each in seen]
                cached = max([0, *common]) // size * size
            seen.append(asked["prompt"])
            ended = answered(asked, drafts, cached)
            times = [[0.01, row["is_prefill"], not row["is_prefill"], 1] for row in ended["rows"]]
            answer = {"ended": [ended], "times": times}
        is_babble = FAULT == "babble" and operation == "run"
        sys.stdout.write("babble\n" if is_babble else f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
