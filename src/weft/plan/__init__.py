"""The forest: trees, slicings, techniques, costs."""
