"""KV bookkeeping: pages, slots, keys, the radix tree, the prefix cache and the pools."""
