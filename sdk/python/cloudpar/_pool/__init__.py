"""The implementation of the methods of `Pool`."""
