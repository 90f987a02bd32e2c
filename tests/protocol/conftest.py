from guarantees.scale import SCALE

collect_ignore = [] if SCALE.full else ["test_g13_typescript.py"]
"""`make test` runs it as part of TypeScript's own tests."""
