"""Ray Serve with the real vLLM, where DRAFTLINE_VLLM_PYTHON names the python of an environment that has both."""

import os
from pathlib import Path

_PYTHON = os.environ.get("DRAFTLINE_VLLM_PYTHON", "")
collect_ignore_glob = [] if _PYTHON and Path(_PYTHON).with_name("serve").exists() else ["test_*.py"]
