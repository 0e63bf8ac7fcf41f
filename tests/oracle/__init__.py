"""The two oracles: Spark itself on the same text, and a naive evaluator in plain Python; and what feeds them."""
