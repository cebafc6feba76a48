"""Does anything that a stranger can send make the package raise, grow, stall or believe it?"""
