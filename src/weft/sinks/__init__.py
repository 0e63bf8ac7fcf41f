"""Where committed answers go: one sink a file, all of them delivered to after the commit of a batch, none before."""
