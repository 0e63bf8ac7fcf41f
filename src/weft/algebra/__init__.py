"""What can be merged: every aggregate as lift, merge, invert and lower, with its properties."""
