"""The part that runs at the workers, where `cloudpar` may not be installed: every function here travels by value.

Two rules follow. First, at the top, modules import only the standard library and each other. Functions import NumPy and
cloudpickle where they need them: a captured array needs NumPy anyway, and cloudpickle has just loaded the task code.
Second, there are no classes at module level. cloudpickle makes each class that travels by value only once in a process,
so two task codes in one executor would overwrite each other's methods.
"""
