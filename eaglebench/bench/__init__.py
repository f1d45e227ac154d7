"""Run a plan and write down what happened."""
