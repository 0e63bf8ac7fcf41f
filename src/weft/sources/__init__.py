"""Where a running stream's rows come from, and where those go that cannot be read."""
