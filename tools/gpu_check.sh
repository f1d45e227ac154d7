#!/usr/bin/env bash
# On a machine with CUDA: the tests marked gpu, then a short benchmark. Downloads nothing.
#
#   tools/gpu_check.sh [FOLDER]     FOLDER keeps the runs and the timings; default gpu-check
#   PYTHON=...                      the interpreter to use; default python3
#   GPU_CHECK_SITE=...              a folder with packages that are missing on that machine, made
#                                   elsewhere with tools/gpu_check/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
out="${1:-gpu-check}"
export PYTHONPATH="$PWD${GPU_CHECK_SITE:+:$GPU_CHECK_SITE}${PYTHONPATH:+:$PYTHONPATH}"
export HF_HUB_OFFLINE=1
export EAGLEBENCH_CACHE="$out/cache"
mkdir -p "$out"

echo "== machine"
"$python" - <<'PY'
import sys

import torch
import transformers

if not torch.cuda.is_available():
    sys.exit("there is no CUDA device here")
print(torch.__version__, transformers.__version__, torch.cuda.get_device_name())
PY

echo "== tests"
"$python" -m pytest tests/gpu -m gpu -q -p no:cacheprovider

echo "== the tiny pair"
"$python" -m eaglebench run tiny --device cuda --page-size 1,16 --parallel 1,4 \
    --progress plain --output-dir "$out/results"

echo "== random weights in the shape of SmolLM2-135M: forwards"
"$python" -m tools.gpu_check.random_target "$out/smollm2-shape"
"$python" -m tools.gpu_check.forwards "$out/smollm2-shape" --device cuda | tee "$out/forwards.txt"

echo "== random weights in the shape of SmolLM2-135M: a run"
"$python" -m eaglebench run tiny --model "$out/smollm2-shape" --draft-model smollm2-135m-eagle3 \
    --device cuda --dtype bfloat16 --page-size 16 --parallel 1,8 --ignore-eos \
    --progress plain --output-dir "$out/results"
