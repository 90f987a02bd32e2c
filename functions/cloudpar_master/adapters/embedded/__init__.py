"""One process on one machine: SQLite in WAL mode, and blobs as files."""
