"""The embedded engine: requests, scheduler and the step."""
