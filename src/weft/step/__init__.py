"""The turn: slices and state become answers and the next state. No Spark in here."""
