"""What prefix caching and paging do to EAGLE speculative decoding."""
