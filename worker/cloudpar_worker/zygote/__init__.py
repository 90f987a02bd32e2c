"""The process from which executors are forked. It also measures their memory and lowers the priority of tasks' threads.
"""
