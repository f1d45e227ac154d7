"""Parts of `tools/gpu_check.sh`."""
