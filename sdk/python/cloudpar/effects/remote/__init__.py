"""The part of `effects` that runs at the workers.

Its functions are pickled by value, since workers may lack `cloudpar`.

Two rules follow. First, at the top, modules import only the standard library and each other. Functions import NumPy and
cloudpickle where they need them: a captured array needs NumPy anyway, and cloudpickle has just loaded the task code.
Second, there are no classes at module level. If a class is pickled by value, cloudpickle makes it only once in each
process, so two task codes in one executor would overwrite each other's methods.
"""
