"""The process whose load time and memory benchmarks.engine prints loads as an engine host does."""

import json
import subprocess
import sys

import pytest

from completion.model.transformer import has_int8_instructions
from completion.paths import module_environment
from drafting.machine_code.objects import IS_LINKABLE

HOST = """
import sys
from benchmarks.engine.host import main
main()
print("numba" in sys.modules)
"""


@pytest.mark.skipif(not (IS_LINKABLE and has_int8_instructions()), reason="machine code is kept on Linux with x86 only")
@pytest.mark.usefixtures("runtime")
def test_the_measured_host_has_the_machine_code_of_the_image_and_no_compiler(tiny_qwen2):
    command = [sys.executable, "-P", "-c", HOST, "--model", str(tiny_qwen2)]
    done = subprocess.run(command, capture_output=True, text=True, env=module_environment(), check=True)
    figures, has_compiler = done.stdout.splitlines()
    assert json.loads(figures).keys() == {"load_s", "resident_mb"}
    assert has_compiler == "False"
