"""The networks: the target, the EAGLE-3 head, their attention and their checkpoints."""
