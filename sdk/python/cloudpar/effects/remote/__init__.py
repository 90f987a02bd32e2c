"""The part that runs at the workers, where `cloudpar` may not be installed: every function here travels by value.

Two rules follow. At the top, modules import only the standard library and each other; functions import NumPy and
cloudpickle where they need them (a captured array needs NumPy anyway, and cloudpickle has just loaded the task code).
And there are no classes at module level: cloudpickle gives each class that travels by value one identity per process,
so two task codes in one executor would overwrite each other's methods.
"""
