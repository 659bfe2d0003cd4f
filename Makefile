# One chore, one command. Everything lives in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   ?= .venv
# Extra arguments for pip, such as an index with CPU builds of torch (see README.md).
PIP_ARGS ?=
# Extra arguments for the benchmarks, such as --only corpus or --keep.
BENCH  ?=
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SOURCES := src tests tools benchmarks examples scripts docs replications README.md CONTRIBUTING.md

# What the embedded models are rebuilt from and where the work goes (docs/how-to/rebuild-the-assets.md).
# SCALE=rehearsal tries every step on a little of the data for a few seconds each, away from the real assets.
SHARED ?= ../shared
MINILM ?=
SCALE  ?= full
SHIPPED := src/evenhand/assets
PYTHON_M = $(BIN)/python -m
TEXTS   = $(addprefix $(FROM)/corpus/,wiki.txt.xz news.txt.xz books.txt.xz)
ifeq ($(SCALE),rehearsal)
WORK   ?= build/rehearsal
ASSETS ?= $(WORK)/assets
FROM    = $(WORK)/shared
CAUSAL := --budget 6 --rows 2
MASKED := --budget 6 --rows 8
VECTORS := --epochs 2
NORMS  := --steps 200 --folds 2
SIDES  := --words 5 --held-by 4 3
PACK   := --tokens 20000 --texts 300
PLAN   := {"teacher": 4, "teachers": 1, "trial": 2, "distil": 4, "student": 4, "plain": 4, \
  "tokens": 1024, "tune_tokens": 1024, "transfer": 50}
YARDSTICK := --seconds 4 --tokens 1024
ROUNDS := --rounds 20
NEED_GPU = @:
ifeq ($(abspath $(ASSETS)),$(abspath $(SHIPPED)))
$(error a rehearsal never writes to $(SHIPPED): name another folder with ASSETS=FOLDER)
endif
else
WORK   ?= build/assets
ASSETS ?= $(SHIPPED)
FROM    = $(SHARED)
CAUSAL := --budget 495
MASKED := --budget 350
VECTORS :=
NORMS  :=
SIDES  :=
PACK   :=
PLAN   := {}
YARDSTICK :=
ROUNDS :=
NEED_GPU = @$(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || \
  { echo "$@ trains for a fixed time and needs a GPU that torch can use; none was found."; exit 2; }
endif

.PHONY: help setup audit test lint fmt bench bench-gpu docs check package licences ci clean assets assets-data assets-text assets-causal assets-masked \
  assets-classifiers assets-embeddings assets-norms assets-ideology

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

lint: $(READY)   ## ruff, mypy and the line budget
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/python tools/size.py

fmt: $(READY)    ## format the code
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(READY)  ## speed, as ratios measured side by side; fails where one is lost
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation $(PIP_ARGS) -c constraints.txt -e '.[bench]'
	@# A rival that asks for older libraries than ours: apart, and without them.
	@test -d build/langfair || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(PIP_ARGS) \
	  --target build/langfair -r benchmarks/langfair.txt || echo "LangFair could not be fetched: its lines are left out"
	$(BIN)/python benchmarks/run.py $(BENCH)

bench-gpu: $(READY)  ## what needs one GPU
	$(BIN)/python benchmarks/run.py --gpu $(BENCH)

docs: $(READY)   ## build the documentation into site/
	@# Not --quiet: it would hide warnings from --strict.
	$(BIN)/mkdocs build --strict

assets:          ## rebuild every embedded model and word list from ../shared (needs a GPU; SCALE=rehearsal does not)
	@test -n "$(MINILM)" || { echo "say where all-MiniLM-L6-v2 is: make assets MINILM=FOLDER"; exit 2; }
	$(MAKE) assets-data
	$(MAKE) assets-text
	$(MAKE) assets-causal
	$(MAKE) assets-masked
	$(MAKE) assets-embeddings
	$(MAKE) assets-norms
	$(MAKE) assets-ideology
	$(MAKE) assets-classifiers

assets-data: $(READY)
ifeq ($(SCALE),rehearsal)
	$(PYTHON_M) tools.assets.rehearsal_data --shared $(SHARED) --out $(FROM)
endif
	mkdir -p $(WORK) $(addprefix $(ASSETS)/,embeddings norms ideology)

assets-text: $(READY)
	$(PYTHON_M) tools.assets.prepare_corpus $(TEXTS) --out $(WORK)/text

assets-causal: $(READY)
	$(NEED_GPU)
	$(PYTHON_M) tools.assets.train_language_model causal --data $(WORK)/text --out $(WORK)/causal $(CAUSAL)
	$(PYTHON_M) tools.assets.export_weights $(WORK)/causal $(ASSETS)/builtin
	$(PYTHON_M) tools.assets.evaluate_language_model $(ASSETS)/builtin --held-out $(WORK)/text/held-out

assets-masked: $(READY)
	$(NEED_GPU)
	$(PYTHON_M) tools.assets.train_language_model masked --data $(WORK)/text --out $(WORK)/masked $(MASKED)
	$(PYTHON_M) tools.assets.export_weights $(WORK)/masked $(ASSETS)/builtin-masked --shares-tokenizer-of builtin
	$(PYTHON_M) tools.assets.evaluate_language_model $(ASSETS)/builtin-masked --held-out $(WORK)/text/held-out

assets-embeddings: $(READY)
	$(PYTHON_M) evenhand train embeddings $(TEXTS) --out $(WORK)/embeddings $(VECTORS)
	cp $(WORK)/embeddings/vectors.safetensors $(ASSETS)/embeddings/

assets-norms: $(READY)
	$(PYTHON_M) tools.assets.train_norms $(FROM)/data/norms/vad_glasgow.csv $(FROM)/data/norms/be5_emomap.tsv \
	  --vectors $(ASSETS)/embeddings/vectors.safetensors --out $(ASSETS)/norms/lexicon.tsv.xz $(NORMS)

assets-ideology: $(READY)
	$(PYTHON_M) evenhand.training.ideology_words $(FROM)/data/ideology/train.jsonl --out $(ASSETS)/ideology/words.json $(SIDES)

assets-classifiers: $(READY)
	$(NEED_GPU)
	@test -f "$(MINILM)/model.safetensors" || \
	  { echo "MINILM=FOLDER must name a folder of all-MiniLM-L6-v2 (docs/adr/0013-distilled-encoder.md)"; exit 2; }
	$(PYTHON_M) tools.assets.pack_classifier_data --shared $(FROM) --minilm $(MINILM) --bpe $(ASSETS)/builtin/tokenizer.json \
	  --out $(WORK)/packed $(PACK)
	$(PYTHON_M) tools.assets.train_classifiers --data $(WORK)/packed --out $(WORK)/classifiers --plan '$(PLAN)'
	$(PYTHON_M) tools.assets.masked_baseline --data $(WORK)/packed --model $(ASSETS)/builtin-masked \
	  --out $(WORK)/classifiers $(YARDSTICK)
	$(PYTHON_M) tools.assets.ship_classifier --run $(WORK)/classifiers --packed $(WORK)/packed --data $(FROM)/data \
	  --out $(ASSETS)/classifiers
	$(PYTHON_M) tools.assets.classifier_figures --model $(ASSETS)/classifiers --data $(FROM)/data --run $(WORK)/classifiers \
	  --packed $(WORK)/packed --out $(WORK)/classifiers/figures.md $(ROUNDS)

check: lint test docs  ## lint, test and docs

package: $(READY)  ## build wheel and sdist into dist/, look inside, install the wheel and use it
	$(BIN)/python scripts/check_package.py --offline .ci/offline --keep dist

licences: $(READY)  ## hold the licence of every installed package against the list
	$(BIN)/python scripts/check_licences.py

ci:              ## every step of CI, from an empty HOME to the lowest versions
	.ci/run

clean:           ## remove what the other targets made
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache
