"""The seed's detector, to the letter of its documents: `LoopDetector` and what it alone needs."""
