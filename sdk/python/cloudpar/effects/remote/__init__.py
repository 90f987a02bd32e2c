"""The half that runs at the worker, where no `cloudpar` is installed: every function here travels by value.

Two rules follow. Modules import only the standard library at the top (NumPy and cloudpickle inside the functions
that need them: the first is there when an array was captured, the second has just loaded the task code). And there
are no classes at module level: cloudpickle gives every by-value class a process-wide identity, so that two task codes
loaded by one executor would overwrite each other's methods.
"""
