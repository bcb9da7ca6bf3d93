"""What a hole of a sketch may become."""
