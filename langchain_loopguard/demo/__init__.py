"""The demo without its display: scripts of tool calls, and the agent that runs them."""
