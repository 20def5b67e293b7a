# The one command surface: what CI runs, anyone can run. The virtual environment makes itself.

PYTHON ?= python3
VENV ?= .venv
ADAPTERS ?= .venv-adapters
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOKENIZER ?=
TESTS ?= tests
PYTEST_FLAGS ?=
ROUNDS ?= 20
DATA ?= demo-data
BENCH ?=
KILLS ?= 200

.PHONY: help demo serve lab test test-adapters lint gen check-gen bench golden fuzz conformance pages clean kills check-proto check-deploy

help:
	@echo "make demo     compile, serve, fetch and sample, from nothing (TOKENIZER=file for another vocabulary)"
	@echo "make test     the tests (TESTS=path for some of them)"
	@echo "make test-adapters  tensors and engine adapters, in an environment of its own (torch, transformers, vLLM, SGLang)"
	@echo "make lint     ruff, mypy, import rules, generated code"
	@echo "make serve    the service on 127.0.0.1:7411, data in demo-data/"
	@echo "make lab      a page that shows a constraint at work, on 127.0.0.1:7412"
	@echo "make gen      regenerate the code of proto/"
	@echo "make golden   rewrite the golden files; look at the difference before you commit it"
	@echo "make bench    measure (BENCH=bench_peers for one of tests/bench)"
	@echo "make check-deploy  lint what's in deploy/: containers, manifests, workflow, PromQL"
	@echo "make kills    kill the server KILLS times while it compiles, writes and promotes; about 10 minutes"
	@echo "make conformance  the official JSON Schema Test Suite, against the committed baseline"
	@echo "make pages    rewrite the pages that are made from tables"
	@echo "make fuzz     property tests, ROUNDS times over; each time has other examples"

$(STAMP): pyproject.toml
	@echo "installing into $(VENV), once: a minute or more, and nothing is said meanwhile"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python -m maskwright.registry.demo $(if $(TOKENIZER),--tokenizer $(TOKENIZER))

serve: $(STAMP)
	$(BIN)/maskwright serve --data $(DATA)

lab: $(STAMP)
	$(BIN)/maskwright lab

test: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) $(TESTS)

$(ADAPTERS)/.installed: pyproject.toml tests/adapters/requirements.txt tests/adapters/engines.txt
	@echo "installing into $(ADAPTERS), once: several minutes and gigabytes, and nothing is said meanwhile"
	test -x $(ADAPTERS)/bin/python || $(PYTHON) -m venv $(ADAPTERS)
	$(ADAPTERS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[compiler]' -r tests/adapters/requirements.txt
	$(ADAPTERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/adapters/engines.txt
	touch $@

test-adapters: $(ADAPTERS)/.installed
	$(ADAPTERS)/bin/python -m pytest $(PYTEST_FLAGS) -rs tests/tensors tests/adapters

lint: $(STAMP) check-gen check-proto
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

gen: $(STAMP)
	$(BIN)/python proto/generate.py

check-gen: $(STAMP)
	$(BIN)/python proto/generate.py --check

# Style, and nothing that breaks callers of the last release.
check-proto: $(STAMP)
	$(BIN)/buf lint proto
	tag=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || exit 0; \
	$(BIN)/buf breaking proto --against ".git#tag=$$tag,subdir=proto"

# With linters of its own, in an environment of its own.
check-deploy:
	test -x .venv-deploy/bin/python || $(PYTHON) -m venv .venv-deploy
	.venv-deploy/bin/python -m pip install --quiet --disable-pip-version-check '.[deploy]'
	.venv-deploy/bin/python deploy/check.py

golden: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/golden --update-golden

bench: $(STAMP)
	$(BIN)/python -m tests.bench $(BENCH)

pages: $(STAMP)
	$(BIN)/python -m tests.conformance --pages
	$(BIN)/python -m maskwright.compiler.pages

conformance: $(STAMP)
	$(BIN)/python -m tests.conformance

kills: $(STAMP)
	MASKWRIGHT_KILLS=$(KILLS) $(BIN)/python -m pytest $(PYTEST_FLAGS) tests/e2e/test_kill.py

fuzz: $(STAMP)
	for round in $$(seq $(ROUNDS)); do $(BIN)/python -m pytest $(PYTEST_FLAGS) tests/property || exit 1; done

clean:
	rm -rf $(VENV) $(ADAPTERS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-data
