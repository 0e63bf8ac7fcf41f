"""The Java that Spark runs in, and the packages that it lacks."""
