"""The first start of an installation: once, and not if the model cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion.errors import DraftlineError
from completion.host.engine_loader import compile_once
from completion.host.server import HostSettings
from completion.model.transformer import has_int8_instructions
from tests.tiny_models import write_tiny_model

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="needs AVX2: other backends have no kernels")


def test_the_engine_is_loaded_apart_once_for_an_installation(tmp_path: Path) -> None:
    settings = HostSettings(model=str(write_tiny_model(tmp_path / "tiny")))
    reports: list[str] = []

    compile_once(settings, lambda sentence, _: reports.append(sentence), tmp_path / "compiled")
    first = list(reports)
    compile_once(settings, lambda sentence, _: reports.append(sentence), tmp_path / "compiled")

    assert "Loading the model" in first
    assert reports == first


def test_a_model_that_cannot_be_loaded_is_tried_again_at_the_next_start(tmp_path: Path) -> None:
    settings = HostSettings(model=str(tmp_path / "missing"))

    with pytest.raises(DraftlineError, match="missing"):
        compile_once(settings, lambda *_: None, tmp_path / "compiled")

    assert not (tmp_path / "compiled").exists()


def test_torch_backends_compile_nothing(tmp_path: Path) -> None:
    compile_once(HostSettings(model="missing", backend="bf16"), lambda *_: None, tmp_path / "compiled")

    assert not (tmp_path / "compiled").exists()
