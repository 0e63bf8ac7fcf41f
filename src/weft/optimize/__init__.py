"""Which queries share what: cost models and one optimizer a file."""
