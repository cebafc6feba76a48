"""The calls and the rules that the tests of presets tell stories with."""

from langchain_loopguard.presets import PRESETS
from langchain_loopguard.presets.hermes import Hermes
from tests.presets.plays import call, new

A, B, C, D = (call(cmd=letter) for letter in "abcd")
READ = call("read_file", path="a.py", say="text")
NEWS = new()
FAILS = [call(cmd="a", say=f"ERR {word} at", fails=True) for word in "vwxyzqrstu"]
"""The same call, failed with different errors each time."""
EVER_FAILS = [call(n=n, say=f"{n * 'x'} broke", fails=True) for n in range(40)]
"""Different calls of one tool, failed with different errors each time."""
SAME_ERROR = [call(n=n, say=f"line {n}: no match", fails=True) for n in range(40)]
"""Different calls of one tool, failed with one error but for its digits."""
MISSING = [
    call("nope", n=n, say="Error: nope is not a valid tool, try one of [bash].", fails=True)
    for n in range(40)
]
REFUSED = [call(n=n, say=f"{n} validation errors for bash", fails=True) for n in range(40)]

HARD = (Hermes(hard_stop_enabled=True),)
"""hermes with its hard stops, which are off by default."""


def of(name):
    """Give a system's rules, or one rule by its name."""
    if name in PRESETS:
        return PRESETS[name].rules
    return tuple(one for preset in PRESETS.values() for one in preset.rules if one.rule == name)
