"""How partials become answers: one technique a file, compiled kernels."""
