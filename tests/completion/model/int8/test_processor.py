"""Instruction sets that a process may use are fewer than those that its processor has."""

import sys

import pytest

from completion.model.int8.kernels.processor import FEATURES, has_amx, processor_features, usable

_VNNI = frozenset({"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni"})
_AMX = frozenset({"amx-tile", "amx-int8"})


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_amx_is_not_used_where_it_cannot_be_asked_for(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert usable(_VNNI | _AMX) == _VNNI
    assert usable(_VNNI) == _VNNI


def test_amx_is_used_beside_vnni_only():
    assert has_amx(_VNNI | _AMX)
    assert not has_amx(_VNNI | {"amx-tile"})
    assert not has_amx(_VNNI - {"avx512vnni"} | _AMX)


@pytest.mark.skipif(not has_amx(processor_features()), reason="this processor lacks AMX")
def test_linux_gives_amx_to_a_process_that_asks():
    assert has_amx(FEATURES)
