"""Draft heads: the published formats, their maths, loading, and writing one as another."""
