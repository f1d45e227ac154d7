"""Digests as people read them."""

_SHA256 = 64


def shown(value: object, *, none: str = "None") -> str:
    """A fact of a record, `none` where there is none; a SHA-256 by its first digits."""
    text = none if value is None else str(value)
    return f"{text[:12]}..." if len(text) == _SHA256 else text
