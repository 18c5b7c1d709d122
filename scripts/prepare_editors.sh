#!/usr/bin/env bash
# Gets the real editors ready for their tests: unpacks Neovim and VS Code, and runs the extension's own tests.
# PYTHON names an interpreter with the extras "default-model" and "dev" of draftline (default: python).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}

"$python" scripts/unpack_neovim.py
vscode=$("$python" scripts/unpack_vscode.py | tee >(cat >&2) | tail -n 1)
node=$("$python" -c 'import json, sys; print(json.loads(sys.argv[1])["node"])' "$vscode")
export PATH="$(dirname "$node"):$PATH"
cd ide_clients/vscode && npm ci --silent && npm test
