"""Numba's compiler, with a cache (``cache.py``) that an edited source cannot leave stale."""

import functools
from types import FunctionType

from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, typeof_impl

from .cache import Kept

FLOAT, INT, VECTOR = types.float64, types.int64, types.float64[::1]
SPINS = 30_000  # looks at a number that another thread is to write, some hundredths of a millisecond


class Kernel:
    """A compiled function for other compiled functions, which Python may call too.

    Numba gives each function a second body that takes its arguments out of Python's objects. For records of forty
    fields that takes longer to compile than the function itself. A Kernel has one only if Python calls it.
    """

    def __init__(self, function, options):
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self.inner = _dispatcher(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)

    @functools.cached_property
    def outer(self):
        """The function with its second body. Another name keeps the two apart in the cache."""
        f = self.py_func
        twin = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        twin.__qualname__, twin.__module__, twin.__doc__ = f"{f.__qualname__}_called", f.__module__, f.__doc__
        return _dispatcher(twin, **self.options)

    def __call__(self, *args):
        return self.outer(*args)


@typeof_impl.register(Kernel)
def _typeof_kernel(kernel, context):
    return typeof_impl(kernel.inner, context)


def _dispatcher(function, **options):
    """Numba's function with a cache that holds for the current sources only.

    A division by zero gives infinity or NaN, as in numpy: the solver looks for both.
    """
    dispatcher = njit(error_model="numpy", **options)(function)
    dispatcher._cache = Kept(function)
    return dispatcher


def compiled(**options):
    """Decorator like ``numba.njit(cache=True)`` for kernels; with NUMBA_DISABLE_JIT it does nothing."""

    def decorate(function):
        return function if config.DISABLE_JIT else Kernel(function, options)

    return decorate


def address(function, result, kinds):
    """Address of a compiled function with arguments of these types, for :func:`late`.

    A function that is called by its address is compiled once, and not again into every caller, which takes any function
    of these types. The code stays loaded as long as the function exists. Without the compiler, the function itself.
    """
    if config.DISABLE_JIT:
        return function
    compiled_form = getattr(function, "inner", function).get_compile_result(result(*kinds))
    if compiled_form.signature.return_type != result:
        raise TypeError(f"{function.__name__} must return {result}, got {compiled_form.signature.return_type}")
    return compiled_form.library.get_pointer_to_function(compiled_form.fndesc.llvm_func_name)


def late(result, kinds):
    """Compiled function ``call(address, arguments)``, for functions of these types; ``kinds`` may be a function too."""
    if config.DISABLE_JIT:
        return lambda function, arguments: function(*arguments)

    @intrinsic
    def call(typing, address, arguments):
        argument_types = kinds() if callable(kinds) else kinds

        def generate(context, builder, signature, values):
            convention = context.call_conv
            function = builder.inttoptr(values[0], convention.get_function_type(result, argument_types).as_pointer())
            parts = cgutils.unpack_tuple(builder, values[1])
            return convention.call_function(builder, function, result, argument_types, parts)[1]

        return result(types.intp, types.Tuple(argument_types)), generate

    return call


def _shared(write):
    """Compiled function that reads, or writes, an entry of an integer array that another thread writes, or reads.

    A thread that has read the entry sees all that the other thread wrote before it.
    """

    def generate(context, builder, signature, values):
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = builder.gep(array.data, [values[1]])
        if write:
            builder.store_atomic(values[2], place, "release", 8)
            return context.get_dummy_value()
        return builder.load_atomic(place, "acquire", 8)

    if write:

        @intrinsic
        def tell(typing, array, i, value):
            return types.none(array, types.intp, types.int64), generate

        return tell

    @intrinsic
    def look(typing, array, i):
        return types.int64(array, types.intp), generate

    return look


if config.DISABLE_JIT:

    def tell(array, i, value):
        """Write an entry of an integer array for another thread."""
        array[i] = value

    def look(array, i):
        """Read an entry of an integer array that another thread writes."""
        return array[i]
else:
    tell, look = _shared(True), _shared(False)


@compiled(nogil=True)
def wait(array, i, least):
    """Wait until another thread has written at least this number to an integer array; False if that takes too long."""
    for _ in range(SPINS):
        if look(array, i) >= least:
            break
    return look(array, i) >= least
