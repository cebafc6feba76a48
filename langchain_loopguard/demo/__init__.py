"""The demo without its display, and what the notebooks share.

Scripts of tool calls, the agent that runs them, a model that needs no key, and the pictures.
"""
