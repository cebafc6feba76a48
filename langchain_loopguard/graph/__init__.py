"""What do the guards inside a graph share, the node and the middleware?

`gate` decides about a batch and `turn` reads where a run stands. `wiring` and `reducers` know the
graph around a node, `declared` and `at_hand` what is kept from step to step, `endings` how a run
ends without a call left open, `tracing` what a trace keeps. Nothing here counts.
"""
