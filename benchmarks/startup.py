"""CPU seconds from the start of a process until commands have answered, beside their limits.

    python -m benchmarks.startup [OTHER_SOURCE]

With another checkout's folder both are timed in turns, and the ratio of their medians is printed.
`run` counts until the target's first forward.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TURNS = 5
_FIRST_FORWARD = """
import os, sys
from eaglebench.cli.main import main
import eaglebench.backends.registry as registry
opened = registry.open_runtime

def first_forward(*_, **__):
    used = os.times()
    os.write(1, f"\\n{used.user + used.system}".encode())
    os._exit(0)

def open_runtime(*args, **more):
    runtime = opened(*args, **more)
    runtime.models.target.forward = first_forward
    return runtime

for module in list(sys.modules.values()):
    if getattr(module, "open_runtime", None) is opened:
        module.open_runtime = open_runtime
registry.open_runtime = open_runtime
main(sys.argv[1:])
"""
_WHOLE = """
import os, sys
from eaglebench.cli.main import main
try:
    main(sys.argv[1:])
finally:
    used = os.times()
    os.write(1, f"\\n{used.user + used.system}".encode())
"""
LIMITS_S = {"--help": 0.15, "list": 1.5, "show": 1.5, "compare": 1.5, "run": 4.0}


def cpu_s(source: Path, code: str, *arguments: str) -> float:
    """CPU seconds that a fresh process has used when `code` says so."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        cwd=source,
    )
    return float(done.stdout.splitlines()[-1])


def commands(results: Path, run_id: str) -> dict[str, tuple[str, list[str]]]:
    """What is timed: code and arguments by name."""
    stored = ["-o", str(results)]
    return {
        "--help": (_WHOLE, ["--help"]),
        "list": (_WHOLE, ["list", *stored]),
        "show": (_WHOLE, ["show", run_id, *stored]),
        "compare": (_WHOLE, ["compare", run_id, run_id, *stored]),
        "run": (_FIRST_FORWARD, ["run", "tiny", "-n", "1", "--progress", "none", *stored]),
    }


def main() -> None:
    """Time every command, in turns with another source where one is named."""
    sources = [ROOT, *(Path(each).resolve() for each in sys.argv[1:2])]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        run = ["run", "tiny", "-n", "2", "--progress", "none", "-o", str(results)]
        cpu_s(sources[-1], _WHOLE, *run)
        run_id = next((results / "runs").iterdir()).name
        for name, (code, arguments) in commands(results, run_id).items():
            times: list[list[float]] = [[] for _ in sources]
            for _ in range(TURNS):
                for source, found in zip(sources, times, strict=True):
                    found.append(cpu_s(source, code, *arguments))
            here, *other = (statistics.median(each) for each in times)
            ratio = f"  {here / other[0]:.2f} of the other's" if other else ""
            print(f"{name:<8} {here:6.2f} s, limit {LIMITS_S[name]:.2f} s{ratio}")


if __name__ == "__main__":
    main()
