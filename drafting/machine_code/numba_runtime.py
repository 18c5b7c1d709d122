"""The part of numba that its machine code calls: three small C modules, loaded without the package and its compiler."""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from sysconfig import get_config_var
from types import ModuleType
from typing import Any, NamedTuple

_HELPERS, _MEMORY = "numba_", "NRT_"
"""Start of the names of symbols that the C modules define."""


_UNPICKLE = "numba_unpickle"
"""Symbol of the function that makes Python objects of a function's code; numba's own imports all of numba."""
_objects: dict[bytes, object] = {}


class Runtime(NamedTuple):
    """What machine code needs.

    Attributes:
        resolve: Returns the address of a symbol; raises LookupError.
        environment: Makes the object that holds a function's constants: environment(globals), with the list `consts`.
        function: Makes a Python function: function(module, name, doc, address, environment, kept alive).
    """

    resolve: Callable[[str], int]
    environment: Callable[[dict[str, Any]], Any]
    function: Callable[..., Callable[..., Any]]


def numba_version() -> str:
    """Return the version of the installed numba, "" if there is none."""
    try:
        return version("numba")
    except PackageNotFoundError:
        return ""


@cache
def runtime() -> Runtime:
    """Load the C modules.

    Raises:
        ImportError: numba lacks one of them, or one lacks what is needed.
    """
    helpers, memory, functions = map(_extension, ("_helperlib", "core.runtime._nrt_python", "_dynfunc"))
    try:
        helper_addresses, memory_addresses = helpers.c_helpers, memory.c_helpers
        environment, function = functions.Environment, functions.make_function
    except AttributeError as error:
        raise ImportError(str(error)) from error
    process = ctypes.CDLL(None)
    unpickle = ctypes.cast(_unpickle, ctypes.c_void_p).value or 0

    def resolve(name: str) -> int:
        if name == _UNPICKLE:
            return unpickle
        for start, addresses in ((_HELPERS, helper_addresses), (_MEMORY, memory_addresses)):
            if name.startswith(start):
                return int(addresses[name.removeprefix(start)])
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(process, name))
        except ValueError as error:
            raise LookupError(f"This process has no symbol {name}.") from error

    return Runtime(resolve, environment, function)


def _object_at(address: int, size: int, _digest: int) -> object:
    """Return the object of a pickle in linked code: the class of an array, or an error."""
    pickled = ctypes.string_at(address, size)
    if pickled not in _objects:
        _objects[pickled] = pickle.loads(pickled)  # noqa: S301  from code that runs anyway
    return _objects[pickled]


_unpickle = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(_object_at)


def _extension(name: str) -> ModuleType:
    """Load a C module of numba under its own name, as `import numba` would."""
    qualified = f"numba.{name}"
    if qualified in sys.modules:
        return sys.modules[qualified]
    package = find_spec("numba")  # without importing it
    if package is None or package.origin is None:
        raise ImportError("numba is not installed.")
    path = Path(package.origin).parent.joinpath(*name.split(".")).with_suffix(get_config_var("EXT_SUFFIX"))
    spec = spec_from_file_location(qualified, path, loader=ExtensionFileLoader(qualified, str(path)))
    if spec is None or not path.is_file():
        raise ImportError(f"numba has no {path}.")
    module = module_from_spec(spec)
    ExtensionFileLoader(qualified, str(path)).exec_module(module)
    return module
