"""What do the guards of LangChain messages have in common, whatever the host?

Decides nothing about hosts: no graph, node, hook or callback is known here, and nothing of
LangGraph is imported. The adapters read messages with `history`, have `outcome` say what happens,
and carry it out.
"""
