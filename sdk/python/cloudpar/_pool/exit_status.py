import contextlib
import signal


def exit_as_interrupted() -> None:
    """Make this process, which is about to exit, end by SIGINT, as Ctrl-C ends other programs. A shell sees status 130.

    Python sets the exit status before it calls the functions that are registered with `atexit`, so they cannot change
    the status. Therefore the C library raises the signal, after Python has done everything else, such as flushing
    files.
    """
    with contextlib.suppress(Exception):  # a platform without this keeps its usual exit status
        import ctypes

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        library = ctypes.CDLL(None)
        library["__cxa_atexit"](library["raise"], ctypes.c_void_p(signal.SIGINT), None)
