# One chore, one command. Everything lives in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   ?= .venv
# Extra arguments for pip, such as an index with CPU builds of torch (see README.md).
PIP_ARGS ?=
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SOURCES := src tests benchmarks examples scripts

.PHONY: help setup audit test lint fmt bench docs check clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

setup: $(READY)  ## create .venv and install evenhand with what it needs

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evenhand needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Try: make setup PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing. On Debian and Ubuntu: sudo apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[all,dev]'
	@touch $(READY)

audit: $(READY)  ## measure the default model and write a report
	$(BIN)/evenhand audit

test: $(READY)   ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

lint: $(READY)   ## ruff and mypy
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

fmt: $(READY)    ## format the code
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(READY)  ## speed, as ratios measured side by side
	for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

docs: $(READY)   ## build the documentation into site/
	$(BIN)/mkdocs build --quiet --strict

check: lint test docs  ## everything CI checks

clean:           ## remove what the other targets made
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache
