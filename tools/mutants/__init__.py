"""Planted faults: edits of the package that a named test has to notice (`make mutants`)."""
