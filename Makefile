# The one command surface: what CI runs, anyone can run. The virtual environment makes itself.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOKENIZER ?=
TESTS ?= tests
PYTEST_FLAGS ?=
ROUNDS ?= 20
DATA ?= demo-data

.PHONY: help demo serve test lint gen check-gen bench golden fuzz conformance pages clean

help:
	@echo "make demo     compile, serve, fetch and sample, from nothing (TOKENIZER=file for another vocabulary)"
	@echo "make test     the tests (TESTS=path for some of them)"
	@echo "make lint     ruff, mypy, import rules, generated code"
	@echo "make serve    the service on 127.0.0.1:7411, data in demo-data/"
	@echo "make gen      regenerate the code of proto/"
	@echo "make golden   rewrite the golden files; look at the difference before you commit it"
	@echo "make bench    measure"
	@echo "make conformance  the official JSON Schema Test Suite, against the committed baseline"
	@echo "make pages    rewrite the pages that are made from tables"
	@echo "make fuzz     property tests, ROUNDS times over; each time has other examples"

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python -m maskwright.registry.demo $(if $(TOKENIZER),--tokenizer $(TOKENIZER))

serve: $(STAMP)
	$(BIN)/maskwright serve --data $(DATA)

test: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) $(TESTS)

lint: $(STAMP) check-gen
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

gen: $(STAMP)
	$(BIN)/python proto/generate.py

check-gen: $(STAMP)
	$(BIN)/python proto/generate.py --check

golden: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/golden --update-golden

bench: $(STAMP)
	$(BIN)/python -m tests.bench

pages: $(STAMP)
	$(BIN)/python -m tests.conformance --pages

conformance: $(STAMP)
	$(BIN)/python -m tests.conformance

fuzz: $(STAMP)
	for round in $$(seq $(ROUNDS)); do $(BIN)/python -m pytest $(PYTEST_FLAGS) tests/property || exit 1; done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-data
