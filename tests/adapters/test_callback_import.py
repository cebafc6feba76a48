"""What does the callback handler need at import, and what where LangGraph isn't installed?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    """Run code in a fresh Python and give what it prints."""
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_making_a_handler_imports_no_langgraph():
    # LangGraph takes some 0.4 seconds to import, and a chain has no use for it.
    code = """
import sys
from langchain_loopguard import LoopGuardCallbackHandler
LoopGuardCallbackHandler()
print(any(name.partition(".")[0] == "langgraph" for name in sys.modules))
"""
    assert run(code) == "False"


def test_a_loop_of_plain_tool_calls_is_stopped_where_langgraph_is_missing():
    code = """
import sys
sys.modules["langgraph"] = None  # as if it weren't installed
from langchain_core.tools import tool
from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy

ran = []

@tool
def search(q: str) -> str:
    "Search."
    ran.append(q)
    return "nothing"

guard = LoopGuardCallbackHandler(LoopGuardPolicy.seed(), scope="handler", fail_open=False)
try:
    for _ in range(9):
        search.invoke({"q": "a"}, {"callbacks": [guard]})
except LoopDetectedError as error:
    print(len(ran), error.tools)
"""
    assert run(code) == "2 ('search',)"
