"""Where files lie: on this machine or in a store that is reached by a URL."""
