"""`LoopDetector`, which this project began with, and what it alone needs.

It is called the seed: the detector of gglib, to the letter of its documents. The default guard
doesn't use it; `LoopGuardPolicy.seed()` makes a policy of it, and it can be used by itself.
"""
