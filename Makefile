# One verb a target. `make demo` and `make test` set up their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-full compatibility check gate format format-check lint types tests mutants gpu clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)  ## the main job on the real model
	$(BIN)/eaglebench run mtbench --page-size 16

test: $(STAMP)  ## format, lint, types and the tests
	$(MAKE) check

test-full: $(STAMP)  ## also the full products of the test matrices and the slow tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not gpu" -p no:randomly -n 2

compatibility: $(STAMP)  ## prefix caching over page size x chunk, with and without window layers
	for model in smollm2-135m smollm2-135m-swa; do for suite in mtbench page-edges; do \
	  $(BIN)/eaglebench run $$suite --model $$model --matrix compatibility || exit; done; done

check: format-check lint types tests gate

GATED := $(BIN)/eaglebench run --dtype float64 --progress none -e gate

gate: $(STAMP)  ## run the tiny suites in float64 and hold their counts against the committed baselines
	$(GATED) tiny --page-size 1,16 --chunked-prefill-size -1,16 > /dev/null
	$(BIN)/eaglebench gate --baseline tiny-float64
	$(GATED) tiny-pages > /dev/null
	$(BIN)/eaglebench gate --baseline tiny-pages-float64
	$(GATED) tiny --num-steps 5 --parallel 4 --chunked-prefill-size 16 > /dev/null
	$(BIN)/eaglebench gate --baseline tiny-lookahead-float64

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

format-check: $(STAMP)
	$(BIN)/ruff format --check .

lint: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

tests: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not full and not slow and not gpu" -n 2

mutants: $(STAMP)  ## plant every declared fault in a copy and see that its tests notice
	$(BIN)/python -m tools.mutants.run --jobs 2

gpu: $(STAMP)  ## the gpu tests and a short benchmark, on a CUDA machine
	PYTHON=$(BIN)/python tools/gpu_check.sh

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
