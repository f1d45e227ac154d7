"""Render records for people."""
