"""Speculation: propose, accept, count."""
