"""The first start of an installation: once, and not if the model cannot be loaded."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from completion.errors import DraftlineError
from completion.host.engine_loader import compile_once, try_apart
from completion.host.server import HostSettings
from completion.model.transformer import has_int8_instructions
from completion.paths import module_environment
from completion.progress import silent
from drafting import compiled
from drafting.machine_code.image import UNTRIED, Code, _read, is_whole, write_image
from drafting.machine_code.objects import _EXECUTABLE, IS_LINKABLE, _Object
from tests.tiny_models import write_tiny_model

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="needs AVX2: other backends have no kernels")


_HOST = """
import ssl
import sys
from pathlib import Path
from completion.cancellation import CancelToken
from completion.host.engine_loader import compile_once, load_engine
from completion.host.process.sockets import TcpAddress
from completion.host.server import HostSettings
from completion.progress import silent
from completion.request import CompletionRequest, Sampling, WorkspaceFile, WorkspaceUpdate

tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # which cannot be pickled
settings = HostSettings(model=sys.argv[1], tcp=TcpAddress("127.0.0.1", 0, "", tls=tls))
trial = compile_once(settings, silent, Path(sys.argv[2]))
loaded = load_engine(settings, silent, mapped=True)
loaded.settle()
engine, never = loaded.engine, CancelToken()
list(engine.update_workspace(WorkspaceUpdate("w", (WorkspaceFile("a.py", "def one():\\n    return 1\\n"),)), never))
for prefix, language, sampling in (
    ("def two():\\n    ret", "python", Sampling()),
    ("x = 3\\ndef two():\\n    ret", "python", Sampling(temperature=0.7, seed=3)),
    ("package main\\nfunc main() {\\n\\tx :", "go", Sampling()),
):
    request = CompletionRequest(
        prefix, language=language, document="d", workspace="w", sampling=sampling, suggestions=3, max_tokens=8
    )
    assert list(engine.complete(request, never))[-1].done
engine.close()
if trial is not None and len(sys.argv) == 3:
    trial()
print([name for name in ("numba", "llvmlite", "numpy.ma") if name in sys.modules])
"""


@pytest.fixture(autouse=True)
def own_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process go on with numba after a test."""
    monkeypatch.setattr(compiled._state, "image", None)


@pytest.mark.skipif(not IS_LINKABLE, reason="machine code is kept on Linux with x86 only")
def test_an_engine_of_a_later_start_completes_without_the_compiler_and_masked_arrays(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny")
    command = [sys.executable, "-P", "-c", _HOST, str(model), str(tmp_path / "kernels.image")]
    done = subprocess.run(command, capture_output=True, text=True, env=module_environment(), check=False)

    assert done.stderr == ""
    assert done.stdout == "[]\n"


def test_the_engine_is_loaded_apart_once_for_an_installation(tmp_path: Path) -> None:
    settings = HostSettings(model=str(write_tiny_model(tmp_path / "tiny")))
    reports: list[str] = []

    compile_once(settings, lambda sentence, _: reports.append(sentence), tmp_path / "compiled")
    first = list(reports)
    trial = compile_once(settings, lambda sentence, _: reports.append(sentence), tmp_path / "compiled")

    assert "Loading the model" in first
    assert trial is None
    assert "Loading the model" not in reports[len(first) :]


@pytest.mark.skipif(not IS_LINKABLE, reason="machine code is kept on Linux with x86 only")
def test_an_image_has_its_name_once_a_process_has_completed_with_it(tmp_path: Path) -> None:
    settings, image = HostSettings(model=str(write_tiny_model(tmp_path / "tiny"))), tmp_path / "kernels.image"

    trial = compile_once(settings, silent, image)
    assert trial is not None
    assert not image.exists()
    trial()

    assert codes_in(image)
    assert not image.with_suffix(UNTRIED).exists()


@pytest.mark.skipif(not IS_LINKABLE, reason="machine code is kept on Linux with x86 only")
@pytest.mark.parametrize("tried_by", ["the same host", "the next host"])
def test_an_image_whose_code_ends_its_process_is_emptied(tmp_path: Path, tried_by: str) -> None:
    settings, image = HostSettings(model=str(write_tiny_model(tmp_path / "tiny"))), tmp_path / "kernels.image"
    command = [sys.executable, "-P", "-c", _HOST, settings.model, str(image), "no trial"]
    subprocess.run(command, capture_output=True, env=module_environment(), check=True)
    untried = image.with_suffix(UNTRIED)
    codes = codes_in(untried)
    assert codes
    write_image(untried, [replace(code, content=with_traps(code.content)) for code in codes])

    if tried_by == "the same host":
        try_apart(settings, image, silent)
    else:
        assert compile_once(settings, silent, image) is None

    assert is_whole(image)
    assert not codes_in(image)


def codes_in(image: Path) -> list[Code]:
    """Return the code of an image."""
    codes = _read(image)
    assert codes is not None
    return codes


def with_traps(content: bytes) -> bytes:
    """Return object code in which every instruction is a trap."""
    changed = bytearray(content)
    for section in _Object(content).sections:
        if section["flags"] & _EXECUTABLE:
            start, size = int(section["offset"]), int(section["size"])
            changed[start : start + size] = b"\xcc" * size
    return bytes(changed)


def test_a_model_that_cannot_be_loaded_is_tried_again_at_the_next_start(tmp_path: Path) -> None:
    settings = HostSettings(model=str(tmp_path / "missing"))

    with pytest.raises(DraftlineError, match="missing"):
        compile_once(settings, lambda *_: None, tmp_path / "compiled")

    assert not (tmp_path / "compiled").exists()


def test_torch_backends_compile_nothing(tmp_path: Path) -> None:
    compile_once(HostSettings(model="missing", backend="bf16"), lambda *_: None, tmp_path / "compiled")

    assert not (tmp_path / "compiled").exists()
