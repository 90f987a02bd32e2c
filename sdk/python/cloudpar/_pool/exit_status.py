import contextlib
import signal


def exit_as_interrupted() -> None:
    """Let this process, which is about to end, end by SIGINT, like any that Ctrl-C interrupted: to a shell, with 130.

    Python decides on the status before functions at exit run. So the C library is asked to raise the signal, behind
    everything that Python still does, such as flushing files and calling other functions at exit.
    """
    with contextlib.suppress(Exception):  # on a platform without this the process ends as it would have
        import ctypes

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        library = ctypes.CDLL(None)
        library["__cxa_atexit"](library["raise"], ctypes.c_void_p(signal.SIGINT), None)
