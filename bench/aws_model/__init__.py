"""Runs the real master and agents on a model of AWS, in simulated time, to see what a large deployment reaches."""
