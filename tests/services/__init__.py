"""Real services that tests start by themselves, on loopback and on free ports."""
