"""Pure: no I/O, no clock, no environment, no randomness. State and events in, state and effects out."""
