"""Compilation of inner loops to machine code with numba. The compiled function keeps its Python type.

numba and LLVM take 65 MB and a second, so a process that may use an image of machine code never imports them. What the
image lacks is compiled, or read from numba's own cache.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from drafting.machine_code.image import Code, Image, Native, Shape, read_image, shape_of, write_image

if TYPE_CHECKING:
    from drafting.machine_code.compiler import Seen

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., object])


class _State:
    """The process's image, and the kernels whose calls are noted for a new one."""

    def __init__(self) -> None:
        self.image: Image | None = None
        self.noted: dict[str, Kernel | Callback] | None = None
        self.lock = threading.RLock()
        self.before: Callable[[], object] | None = None


_state = _State()


class _Made:
    """What numba makes at its first use.

    Args:
        make: Imports numba, and returns its compiled function.
    """

    __slots__ = ("_compiled", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:  # noqa: ANN401  numba's class
        """Numba's function: a dispatcher, which compiles for new kinds of arguments, or a C function."""
        with _state.lock:
            if self._compiled is None:
                before, _state.before = _state.before, None
                if before is not None:
                    before()
                self._compiled = self._make()
        return self._compiled


class InnerKernel(_Made):
    """A function in machine code that other compiled functions call."""

    __slots__ = ()

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401  numba asks for it where another compiled function calls this one
        from numba import types  # noqa: PLC0415  (numba is there already)

        return types.Dispatcher(self.compiled)


class Kernel(InnerKernel):
    """A function in machine code that Python calls, too. It takes positional arguments only.

    Attributes:
        name: "module:name" of the function.
    """

    __slots__ = ("_natives", "name", "seen")

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        super().__init__(make)
        self.name = name
        self.seen: dict[Shape, Seen] = {}
        self._natives: dict[Shape, Native] = {}

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401  those of the function
        """Call the function."""
        if _state.image is None:
            if _state.noted is not None:
                self._note(arguments)
            return self.compiled(*arguments)
        shape = tuple(map(shape_of, arguments))
        native = self._natives.get(shape)
        if native is None:
            native = self._natives[shape] = self._found(shape)
        return native(*arguments)

    def for_arguments_like(self, *arguments: Any) -> Native:  # noqa: ANN401
        """Return the function for such arguments only, which it does not look at: for calls that take a microsecond."""
        if _state.image is not None:
            return self._found(tuple(map(shape_of, arguments)))
        if _state.noted is not None:
            self._note(arguments)
        return cast("Native", self.compiled)

    def codes(self) -> list[Code]:
        """Return the code of the noted calls."""
        from drafting.machine_code.compiler import codes_of_kernel  # noqa: PLC0415  (imports numba)

        return codes_of_kernel(self.name, self.compiled, self.seen)

    def _found(self, shape: Shape) -> Native:
        image = _state.image
        known = image.functions.get(self.name, {}) if image else {}
        return known[shape] if shape in known else cast("Native", self.compiled)

    def _note(self, arguments: tuple[Any, ...]) -> None:
        from drafting.machine_code.compiler import types_of  # noqa: PLC0415  (imports numba)

        shape = tuple(map(shape_of, arguments))
        if shape not in self.seen and _state.noted is not None:
            self.seen[shape] = types_of(self.compiled, arguments)
            _state.noted[self.name] = self


class Callback(_Made):
    """A function in machine code that C code calls; its name is "module:name"."""

    __slots__ = ("name",)

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        super().__init__(make)
        self.name = name

    @property
    def address(self) -> int:
        """Where the code is."""
        if _state.image is not None and self.name in _state.image.callbacks:
            return _state.image.callbacks[self.name]
        if _state.noted is not None:
            _state.noted[self.name] = self
        return int(self.compiled.address)

    def codes(self) -> list[Code]:
        """Return its code."""
        from drafting.machine_code.compiler import codes_of_callback  # noqa: PLC0415  (imports numba)

        return codes_of_callback(self.name, self.compiled)


def compiled(function: Function) -> Function:
    """Compile a function at its first call, with a cache on disk; it runs without the interpreter's global lock."""
    source: Any = function

    def make() -> Function:
        from drafting.machine_code.functions import entry  # noqa: PLC0415  (imports numba)

        return entry(function)

    return cast("Function", Kernel(f"{source.__module__}:{source.__qualname__}", make))


def compiled_within(function: Function) -> Function:
    """Compile a function as part of those that `compiled` marks and that call it; Python cannot call it."""

    def make() -> Function:
        from drafting.machine_code.functions import inner  # noqa: PLC0415  (imports numba)

        return inner(function)

    return cast("Function", InnerKernel(make))


def kernel_in(module: str, name: str) -> Any:  # noqa: ANN401  a function of any type
    """Return a function of a module that imports numba, without importing it."""
    return Kernel(f"{module}:{name}", lambda: getattr(import_module(module), name))


def callback_in(module: str, name: str) -> Callback:
    """Return a callback of a module that imports numba, without importing it."""
    return Callback(f"{module}:{name}", lambda: getattr(import_module(module), name))


def use_image(path: Path) -> bool:
    """Take machine code from an image from now on; return whether there is one that fits."""
    with _state.lock:
        _state.image = read_image(path)
    return _state.image is not None


def code_span() -> tuple[int, int] | None:
    """Return address and size in bytes of the image's code in this process, None without an image."""
    image = _state.image
    return image.span if image is not None else None


def compile_after(ready: Callable[[], object]) -> None:
    """Call `ready` once before this process compiles, or reads numba's cache, which another process fills till then."""
    _state.before = ready


def note_calls() -> None:
    """Note the calls of this process from now on, for `write_noted`."""
    _state.noted = {}


def write_noted(path: Path) -> None:
    """Write an image of the code that was called since `note_calls`; an empty one where it cannot be linked.

    It is also empty if this numba keeps its code in another way than those that draftline was tested with.

    Raises:
        OSError: The file cannot be written.
    """
    codes: list[Code] = []
    try:
        for each in (_state.noted or {}).values():
            codes += each.codes()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        logger.warning("The code of this numba cannot be kept: %r", error)
        codes = []
    write_image(path, codes)
