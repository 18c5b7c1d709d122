"""Plugins of others for the tests of Neovim, unchanged.

They come from their public addresses at pinned revisions. DRAFTLINE_CLIENTS names a folder that has them.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.completion.host.dialects.client_host import FETCHED

SOURCES = {
    "llama.vim": ("https://github.com/ggml-org/llama.vim", "a1c8e6e40cb45df59b78add5b65d575386832465"),
    "blink.cmp": ("https://github.com/saghen/blink.cmp", "4b18c32adef2898f95cdef6192cbd5796c1a332d"),
    "nvim-cmp": ("https://github.com/hrsh7th/nvim-cmp", "a1d504892f2bc56c2e79b65c6faded2fd21f3eca"),
    "lazy.nvim": ("https://github.com/folke/lazy.nvim", "306a05526ada86a7b30af95c5cc81ffba93fef97"),
    "cmp-ai": ("https://github.com/tzachar/cmp-ai", "996c76519fa92abab8071e3a732f4c07265eb554"),
    "plenary.nvim": ("https://github.com/nvim-lua/plenary.nvim", "b9fd5226c2f76c951fc8ed5923d85e4de065e509"),
    "minuet-ai.nvim": ("https://github.com/milanglacier/minuet-ai.nvim", "479487c34041f53aad3184597428e42d9f3333b5"),
    "sidekick.nvim": ("https://github.com/folke/sidekick.nvim", "8ad0ede3ff9065878a853e4b037ba6ac88231fb0"),
    "copilot-lsp": ("https://github.com/copilotlsp-nvim/copilot-lsp", "1b6d8273594643f51bb4c0c1d819bdb21b42159d"),
}


def git(*arguments, folder):
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=120, check=True)


def plugin_folder(name):
    """Return the folder of a plugin at its pinned revision. Skip the test if its source cannot be had."""
    address, revision = SOURCES[name]
    given = os.environ.get("DRAFTLINE_CLIENTS")
    folder = Path(given) / name if given else FETCHED / f"{name}-{revision[:12]}"
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            git("init", "--quiet", folder=folder)
        if git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", folder=folder).stdout.strip() != revision:
            raise FileNotFoundError(revision)
    except subprocess.CalledProcessError:
        try:
            git("fetch", "--quiet", "--depth=1", address, revision, folder=folder)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{name} cannot be fetched from {address}: {getattr(error, 'stderr', error)}")
    git("checkout", "--quiet", revision, folder=folder)
    return folder
