"""What kind of tool is this?

A tool can say what it is: the policy lists it, or the tool declares it (MCP's hints, a
`loop_guard` key in a LangChain tool's `metadata`). Without a declaration the name is looked up,
as a whole, in the short list below. Words inside names are not read: `set_cancellation_reason`
is no reasoning and `print_label` no reading.

A tool of no known kind may do anything; the table of `core.evidence` treats it as a shell. Kinds
decide little: without the whole list of names the guard finds almost the same loops, see the
figures in this package's README.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ToolKind(NamedTuple):
    """What a tool is, as far as loops are concerned. All false: it may do anything."""

    read_only: bool = False
    """Calling it changes nothing, so repeating it is free of consequences."""
    changing: bool = False
    """A success is a change, whatever it answers."""
    shell: bool = False
    """It runs whatever its arguments say."""
    poller: bool = False
    """It is meant to be called again with the same arguments until its result changes."""
    thinking: bool = False
    """It only takes down what the model thinks."""
    handoff: bool = False
    """It hands over to another agent; a reason in its arguments makes no other call."""
    identity: tuple[str, ...] | None = None
    """Names of the arguments that identify a call; `None` for all but the ignored ones."""
    idempotent: bool = False
    """A repeat changes nothing more, so an unbroken run of equal calls does no harm."""
    limit: int | None = None
    """At how many equal calls in a turn a person is asked, in place of the rules' own numbers."""


NAMES: dict[str, str] = {
    "read_only": (
        "cat diff echo fetch fetch_url file_search find find_file get_file_contents git_diff "
        "git_log git_status glob goto grep grep_search head list list_dir list_directory "
        "list_files ls open pwd read read_file read_text_file screenshot scroll_down scroll_up "
        "search search_dir search_file search_files snapshot tail view web_fetch web_search"
    ),
    "changing": (
        "append apply_patch cp create create_file edit edit_file insert mkdir mv replace "
        "str_replace str_replace_editor submit touch write write_file"
    ),
    "shell": (
        "bash cmd exec execute execute_bash execute_code execute_command execute_python "
        "execute_sql ipython powershell python python3 run run_code run_command run_in_terminal "
        "run_python run_shell_command sh shell terminal"
    ),
    "poller": "sleep wait",
    "thinking": "reflect scratchpad sequential_thinking sequentialthinking think",
}
"""Kind -> whole names of tools, in lower case with `_` between words. A declaration or a list of
the policy goes before it."""

_OF_NAME = {name: kind for kind, names in NAMES.items() for name in names.split()}

HANDOFF = "transfer_to_"
"""How LangGraph's swarm and supervisor and OpenAI's agents name a tool that hands over."""

_HANDOFF_KEY = "__handoff_destination"
"""The key of a tool's `metadata` in which swarm and supervisor say where it hands over to."""

_HINTS = {"readOnlyHint": "read_only", "idempotentHint": "idempotent"}
"""MCP's hints -> the fields that they are."""

DECLARED_IN = frozenset({"loop_guard", "annotations", _HANDOFF_KEY, *_HINTS})
"""The keys of a tool's `metadata` in which it may declare what it is."""


@lru_cache(maxsize=1024)
def kind_of_name(name: str) -> ToolKind:
    """Look a name up in `NAMES`, in lower case.

    Returns:
        A tool that may do anything when the name is not listed.
    """
    whole = name.lower()
    if whole.startswith(HANDOFF):
        return ToolKind(handoff=True)
    kind = _OF_NAME.get(whole)
    return ToolKind() if kind is None else ToolKind()._replace(**_true(kind))


def _true(*fields: str) -> dict[str, Any]:
    return dict.fromkeys(fields, True)


def declared_traits(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read what a tool declares of itself, as fields of `ToolKind`.

    Args:
        metadata: The LangChain tool's `metadata`. Read are MCP's `readOnlyHint` and
            `idempotentHint` (at the top or under `annotations`), LangGraph's destination of a
            handoff, and `{"loop_guard": {…}}` with a boolean for `read_only`, `changing`,
            `shell`, `poller`, `thinking`, `handoff` or `idempotent`, a list of argument names
            for `identity`, a whole number from 1 for `limit`.

    Returns:
        The fields that are declared. Values of another type count as not declared.
    """
    # The types are asked, not the values: a value may lie about its class, or raise when asked.
    if type(metadata) is not dict:
        return {}
    found: dict[str, Any] = {}
    annotations = metadata.get("annotations")
    for place in (metadata, annotations if type(annotations) is dict else {}):
        for hint, field in _HINTS.items():
            if type(place.get(hint)) is bool:
                found[field] = place[hint]
    if type(metadata.get(_HANDOFF_KEY)) is str:
        found["handoff"] = True
    own = metadata.get("loop_guard")
    return {**found, **(_own_declaration(own) if type(own) is dict else {})}


def declared_kind(name: str, metadata: Mapping[str, Any] | None) -> ToolKind | None:
    """Make a kind of what a tool declares; its name says what that leaves open.

    Returns:
        The kind, `None` when nothing is declared.
    """
    traits = declared_traits(metadata)
    if not traits:
        return None
    kind = kind_of_name(name)._replace(**traits)
    return kind._replace(shell=False, changing=False) if kind.read_only else kind


def _own_declaration(own: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in ToolKind._fields:
        value = own.get(field)
        if field == "identity":
            if type(value) in (list, tuple) and value and all(type(key) is str for key in value):
                found[field] = tuple(value)
        elif field == "limit":
            if type(value) is int and value >= 1:
                found[field] = value
        elif type(value) is bool:
            found[field] = value
    return found
