"""What stands behind the methods of `Pool`."""
