"""What kind of tool is this?

A tool can say what it is: the policy lists it, or the tool itself declares it (MCP's
`readOnlyHint`, a `loop_guard` key in a LangChain tool's `metadata`). A declaration beats the
name. Without one the words of the name are read. A name that says nothing is a tool that
changes something, which is the careful side: such calls get the smaller allowances.

Words instead of substrings: `read` is in `thread_create`, `list` in `enlist_user`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from xxhash import xxh32_intdigest

if TYPE_CHECKING:
    from collections.abc import Mapping


class ToolTraits(NamedTuple):
    """What a tool is, as far as loops are concerned."""

    read_only: bool = False
    """Calling it changes nothing, so repeating it is free of consequences."""
    shell: bool = False
    """It runs whatever its arguments say, so its name tells nothing of what a call does."""
    poller: bool = False
    """It is meant to be called again with the same arguments until its answer changes. Waiting
    itself is such a tool by its name: a `sleep` between two looks makes no loop of them."""
    thinking: bool = False
    """It only takes down what the model thinks."""


READING_VERBS = frozenset(
    "calculate cat check count describe diff download echo fetch find get glob goto grep head "
    "inspect list load look lookup ls open ping poll print pwd query read recall retrieve scroll "
    "search select show sleep tail think view wait whoami".split()
)
"""Verbs of tools that change nothing. They stand in the tool lists of the ten public collections
that the figures were measured on and of the MCP reference servers."""

READING_NOUNS = frozenset(
    "date dir history log logs output page screenshot snapshot stat status tree".split()
)
"""What such tools are named for when their name has no verb: `BashOutput`, `git_status`."""

CHANGING_VERBS = frozenset(
    "add append apply approve assign book build buy cancel clear click close commit copy create "
    "delete deploy drop edit exchange execute fill insert install kill make merge modify move "
    "patch pay post press publish push put register remove rename replace reply reset restart "
    "return run save send set start stop submit transfer type undo update upload write".split()
)
"""Verbs of tools that change something. The first verb of a name decides (`check_build` only
reads, `set_status` does not), and a second one after `and` or `or` (`get_or_create`)."""

SHELL_WORDS = frozenset(
    "bash cmd code command commands console exec ipython jupyter powershell pytest python repl "
    "script sh shell terminal test tests zsh".split()
)
"""Words of names of tools that run what they are given."""

THINKING_WORDS = frozenset(
    "reason reasoning reflect reflection scratchpad sequentialthinking think thinking thought "
    "thoughts".split()
)
"""Words of names of tools that only take down what the model thinks."""

_WAIT = re.compile(rb"(?i)\bsleep(?: +-\w+)?[ (]+\d")
"""`sleep 60`, `time.sleep(5)`, `Start-Sleep -Seconds 5`."""

_LONGEST_NAME = 48
"""Characters kept of a name. Model providers allow 64 of ASCII, but a model may make up any."""

_SHELL_NAMES = (["run"], ["execute"])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=1024)
def traits_of_name(name: str) -> ToolTraits:
    """Read the traits out of the words of a tool's name; `camelCase` is split as well."""
    words = [word.lower() for word in _WORD.findall(name)]
    verbs = [word for word in words if word in READING_VERBS or word in CHANGING_VERBS]
    if verbs:
        also_changes = any(
            joint in {"and", "or"} and word in CHANGING_VERBS for joint, word in pairwise(words)
        )
        read_only = verbs[0] in READING_VERBS and not also_changes
    else:
        read_only = any(word in READING_NOUNS for word in words)
    shell = not read_only and (words in _SHELL_NAMES or any(word in SHELL_WORDS for word in words))
    poller = verbs[:1] in (["sleep"], ["wait"])
    thinking = any(word in THINKING_WORDS for word in words)
    return ToolTraits(read_only, shell, poller, thinking)


def waits(traits: ToolTraits, arguments: bytes) -> bool:
    """Tell whether a call waits by itself before it looks: a shell command with `sleep 60`.

    Args:
        traits: What kind of tool is called.
        arguments: The call's arguments in canonical form.
    """
    return traits.shell and _WAIT.search(arguments) is not None


def kept_name(name: str) -> str:
    """Give what a state keeps of a tool's name in clear: its beginning, in ASCII."""
    return name[:_LONGEST_NAME].encode("ascii", "replace").decode()


@lru_cache(maxsize=1024)
def name_hash(name: str) -> int:
    """Hash a tool's name in 32 bits: what the rules keep of it."""
    return xxh32_intdigest(name.encode())


def declared_traits(name: str, metadata: Mapping[str, Any] | None) -> ToolTraits | None:
    """Read what a tool declares of itself.

    Args:
        name: The tool's name, for what the declaration leaves open.
        metadata: The LangChain tool's `metadata`: MCP's `readOnlyHint` (at the top or under
            `annotations`), or `{"loop_guard": {…}}` with a boolean for a field of `ToolTraits`.

    Returns:
        The traits, `None` when nothing is declared. Values that are not booleans count as not
        declared.
    """
    # The types are asked, not the values: a value may lie about its class, or raise when asked.
    if type(metadata) is not dict:
        return None
    found: dict[str, bool] = {}
    annotations = metadata.get("annotations")
    for place in (metadata, annotations if type(annotations) is dict else {}):
        hint = place.get("readOnlyHint")
        if type(hint) is bool:
            found["read_only"] = hint
    own = metadata.get("loop_guard")
    if type(own) is dict:
        found.update(
            (trait, own[trait]) for trait in ToolTraits._fields if type(own.get(trait)) is bool
        )
    if not found:
        return None
    traits = traits_of_name(name)._replace(**found)
    return traits._replace(shell=False) if traits.read_only else traits
