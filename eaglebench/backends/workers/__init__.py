"""Scripts that run under an engine's own python; they import nothing of this package."""
