"""Every named point exists: a renamed function would silently never be struck."""

import functools
import importlib

import pytest

from tests.torture.points import ENGINE_POINTS, HOST_POINTS, SERVER_POINTS


@pytest.mark.parametrize("point", [*SERVER_POINTS, *HOST_POINTS, *ENGINE_POINTS])
def test_point_exists(point):
    module, _, name = point.partition(":")
    assert callable(functools.reduce(getattr, name.split("."), importlib.import_module(module)))
