"""The adapters implement the ports: `embedded` with SQLite and files, `aws` with services of AWS."""
