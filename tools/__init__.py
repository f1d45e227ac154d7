"""Scripts that make what the package ships."""
