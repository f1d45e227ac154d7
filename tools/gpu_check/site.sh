#!/usr/bin/env bash
# Collect the packages that a bare CUDA image (torch, transformers, pytest) lacks into one folder.
#
#   tools/gpu_check/site.sh FOLDER [PYTHON_VERSION]     3.12 unless told otherwise
set -euo pipefail
cd "$(dirname "$0")/../.."
python="${PYTHON:-python3}"
"$python" -m pip install --quiet --no-deps --only-binary :all: --python-version "${2:-3.12}" \
    -c constraints.txt --target "$1" \
    allpairspy annotated-types gguf platformdirs py-cpuinfo2 pydantic pydantic-core \
    pydantic-settings python-dotenv typing-inspection
