"""Answers and accepted counts of a target and its head by a loop that shares nothing with the engine."""
