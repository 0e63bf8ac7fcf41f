"""One technique a file, each with its card at the head."""
