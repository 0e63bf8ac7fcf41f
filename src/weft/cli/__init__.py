"""The command line: a face without logic of its own."""
