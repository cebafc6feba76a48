"""The hosts: LangGraph's graphs, LangChain's middleware, LangChain's callbacks.

Each adapter carries out what `gate` and the layer in `langchain_loopguard.langchain` decide, and
none imports another one. Nothing is imported here, so that a host is loaded only where it is used.
"""
