from support.scale import SCALE

collect_ignore = [] if SCALE.full else ["test_g13_typescript.py"]
"""`make test` already runs these vectors as a part of TypeScript's own tests."""
