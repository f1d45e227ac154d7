"""The networks: the target, the draft heads, their attention and their checkpoints."""
