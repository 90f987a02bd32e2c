"""The adapters for a master in one process: SQLite in WAL mode, and blobs as files."""
