# Every target makes the environment that it needs; a second run finds it made.
#   make test PYTHON=python3.12        another interpreter for a new environment
#   make test PYTEST_ARGS="-k beam"    only some tests
#   make test PYTEST_WORKERS=0         in one process, as a debugger needs it

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
LOWEST := build/lowest
PEERS  := benchmarks/.venv
PYTEST_ARGS ?=
# One more than there are processors, since some tests wait for other processes (two cores: 12:00 and 10:58 minutes).
PYTEST_WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# Where a container turns bytecode off, each worker and each program that tests start would compile all anew.
export PYTHONDONTWRITEBYTECODE =

# What depends on the processor: kernels of attention and of products, the bits that are promised of them, and the
# memory of bf16. A library takes no more than it is told to; `make test` runs on all there is.
ATTENTION_TESTS := $(patsubst %,tests/parity/test_%.py,blocks_of_attention dense_attention linear_attention packed patterns rwkv)
# What chooses another arithmetic where the processor has no units for bf16 and int8; float32 stays as it is.
HALF_TESTS := tests/property/test_engine.py tests/property/test_engine_numbers.py tests/property/test_shortlist.py tests/property/test_threads.py \
	tests/system/test_resume.py::test_killed_again_and_again \
	tests/unit/cost/test_before.py::test_what_fits_in_bf16_is_not_refused \
	tests/unit/cost/test_memory.py::test_decoding_takes_what_is_measured \
	tests/unit/nn/test_products.py tests/unit/tasks/translate/test_translator.py
HALF_ARGS := -q -k 'bf16 or int8 or products' $(HALF_TESTS)
# Without AVX-512 MKL multiplies for modules, whose rows depend on each other: laws of bits are asked of translations only.
CPU_TESTS := $(ATTENTION_TESTS) $(HALF_TESTS) tests/parity/test_torch_transformer.py tests/property/test_decoding_state.py \
	tests/property/test_neighbours.py tests/unit/decode/test_ranking.py tests/unit/tasks/generate/test_generator.py \
	tests/unit/tasks/test_answers.py
# Those of them whose sums PyTorch's own kernels take part in, without its vector instructions.
PLAIN_TESTS := $(ATTENTION_TESTS) tests/parity/test_torch_transformer.py tests/property/test_neighbours.py \
	tests/property/test_threads.py tests/unit/decode/test_ranking.py tests/unit/nn/test_products.py

.DEFAULT_GOAL := help
.PHONY: help install demo test test-cpus test-lowest test-sanitized mutants check format bench bench-train bench-decode bench-serve \
	docs clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

install: $(STAMP) ## make .venv with the package (editable) and its tools, versions as in constraints.txt

$(STAMP): pyproject.toml constraints.txt hatch_build.py src/dragoman/nn/cpu/native.c
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,plot,serve]'
	@touch $@

demo: $(STAMP) ## train a small translator on the embedded corpus and translate with it
	$(BIN)/dragoman demo

test: $(STAMP) ## run the tests, a worker with one thread for each core and one more, four at most
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest \
		--numprocesses $(PYTEST_WORKERS) --maxprocesses 4 --dist worksteal $(PYTEST_ARGS)

# Hiding instructions that a processor lacks would only repeat `make test`.
LACKS := ! grep -qsw

test-cpus: $(STAMP) ## run what depends on the processor as if this were each of the simpler ones, four at most
	$(LACKS) amx_tile /proc/cpuinfo || ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 $(MAKE) test PYTEST_ARGS="$(HALF_ARGS)"
	$(LACKS) avx512_bf16 /proc/cpuinfo || ONEDNN_MAX_CPU_ISA=AVX512_CORE $(MAKE) test PYTEST_ARGS="$(HALF_ARGS)"
	$(LACKS) avx512f /proc/cpuinfo || ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 \
		$(MAKE) test PYTEST_ARGS="-q $(CPU_TESTS)"
	ATEN_CPU_CAPABILITY=default $(MAKE) test PYTEST_ARGS="-q $(PLAIN_TESTS)"

# What reads and writes by these libraries: texts, folders, tokenizers of other families, settings, the command line.
LOWEST_TESTS := tests/unit/cli/test_demo.py tests/unit/tasks/test_runs.py tests/unit/cli/test_pipes.py \
	tests/unit/files tests/unit/text tests/unit/test_settings.py tests/unit/models/test_folder.py \
	tests/golden

$(LOWEST)/.installed: pyproject.toml constraints.txt constraints-lowest.txt
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
		--editable . hypothesis pytest pytest-xdist
	@touch $@

test-lowest: $(LOWEST)/.installed ## run a part of the tests on the lowest versions of the libraries
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q --numprocesses $(PYTEST_WORKERS) --maxprocesses 4 \
		--override-ini filterwarnings=default $(LOWEST_TESTS) $(PYTEST_ARGS)

test-sanitized: $(STAMP) ## run what is compiled under the sanitizers for addresses and undefined behaviour
	$(BIN)/python -m tests.sanitized $(PYTEST_ARGS)

mutants: $(STAMP) ## change 300 lines drawn at random, one at a time, and see that tests fail (an hour)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants

check: $(STAMP) ## formatting, lint, types, and which room imports which
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## rewrite the sources as the formatter and the linter want them
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(STAMP) ## run the benchmarks
	$(BIN)/python -m benchmarks

$(PEERS)/.installed: pyproject.toml constraints.txt hatch_build.py src/dragoman/nn/cpu/native.c
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[export]'
	@touch $@

bench-decode: $(PEERS)/.installed ## decoding against CTranslate2 and Hugging Face, which have an environment of their own
	$(PEERS)/bin/python -m benchmarks decode-peers

$(PEERS)/.serve: $(PEERS)/.installed
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[serve]' fastapi flask waitress
	@touch $@

bench-serve: $(PEERS)/.serve ## the server under load, against Flask and FastAPI with CTranslate2
	$(PEERS)/bin/python -m benchmarks serve-peers

# JoeyNMT's own requirements ask for older libraries than it runs with: here is what it imports.
$(PEERS)/.joeynmt: $(PEERS)/.installed
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		importlib_metadata matplotlib sentencepiece 'setuptools<81' subword-nmt tensorboard
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps joeynmt==2.3.0
	@touch $@

bench-train: $(PEERS)/.joeynmt ## training against torch, Hugging Face and JoeyNMT
	$(PEERS)/bin/python -m benchmarks train-peers

docs: $(STAMP) ## pages made from the code, the site in build/site, and every experiment of the walk
	$(BIN)/python docs/make.py
	$(BIN)/python -m tests.docs.walk

clean: ## remove what builds and checks left (the environment and runs/ stay)
	rm -rf build dist mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools docs -name __pycache__ -type d -prune -exec rm -rf {} +
