"""Which tree runs where: the distributed optimizers of 004 ch. 6, a strategy a file.

Each strategy has up to three categories (004 Table 7): *group* never weaves, *weave* has one tree a node, *weave and
group* does either. Beyond the paper, nodes may differ in capacity: what is balanced is cost divided by capacity.
"""
