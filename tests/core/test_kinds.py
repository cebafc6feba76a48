"""Is it known what kind of tool this is, by what it declares, by the policy, else by its name?"""

import pytest

from langchain_loopguard.core.kinds import NAMES, ToolKind, declared_kind, kind_of_name
from langchain_loopguard.core.policy import Policy
from tests.core.odd import HOSTILE

NONE = ToolKind()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[(name, kind) for kind, names in NAMES.items() for name in names.split()],
        ("READ_FILE", "read_only"),
        ("Bash", "shell"),
        ("transfer_to_billing", "handoff"),
    ],
)
def test_a_whole_name_is_looked_up(name, kind):
    assert kind_of_name(name) == NONE._replace(**{kind: True})


@pytest.mark.parametrize(
    "name",
    [
        "set_cancellation_reason",
        "print_label",
        "join_wait_list",
        "readme",
        "rethink_budget",
        "get_user",
        "list_invoices",
        "bash_history",
        "transfer_money",
        "readFile",
        "mcp__files__read_file",
        "",
        "\ud800",
    ],
)
def test_words_inside_a_name_are_not_read(name):
    assert kind_of_name(name) == NONE


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"readOnlyHint": True}, NONE._replace(read_only=True)),
        ({"readOnlyHint": False}, NONE),
        ({"annotations": {"readOnlyHint": True}}, NONE._replace(read_only=True)),
        ({"idempotentHint": True}, NONE._replace(idempotent=True)),
        ({"__handoff_destination": "billing"}, NONE._replace(handoff=True)),
        *[
            ({"loop_guard": {field: True}}, NONE._replace(**{field: True}))
            for field in "read_only changing shell poller thinking handoff idempotent".split()
        ],
        ({"loop_guard": {"identity": ["command"]}}, NONE._replace(identity=("command",))),
        ({"loop_guard": {"limit": 2}}, NONE._replace(limit=2)),
        ({"readOnlyHint": True, "loop_guard": {"read_only": False}}, NONE),
    ],
)
def test_a_tool_declares_its_kind(metadata, kind):
    assert declared_kind("frobnicate", metadata) == kind


def test_a_declaration_goes_before_the_name_and_leaves_the_rest_to_it():
    assert declared_kind("bash", {"readOnlyHint": True}) == NONE._replace(read_only=True)
    limited = declared_kind("bash", {"loop_guard": {"limit": 9}})
    assert (limited.limit, limited.shell) == (9, True)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        [],
        "readOnlyHint",
        {"readOnlyHint": "yes"},
        {"annotations": [1]},
        {"loop_guard": True},
        {"loop_guard": {"read_only": 1, "identity": "command", "limit": 0}},
        {"loop_guard": {"identity": [], "limit": True}},
        {"loop_guard": {"identity": [5]}},
        *[{"loop_guard": make()} for make in HOSTILE.values()],
    ],
)
def test_any_other_declaration_counts_as_none(metadata):
    assert declared_kind("frobnicate", metadata) is None


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        ({"poll_tools": ["t"]}, NONE._replace(poller=True)),
        ({"read_only_tools": ["t"]}, NONE._replace(read_only=True)),
        ({"changing_tools": ["t"]}, NONE._replace(changing=True)),
        ({"shell_tools": ["t"]}, ToolKind(shell=True)),  # noqa: S604 - no process
        ({"tool_limits": {"t": 2}}, NONE._replace(limit=2)),
        ({"tool_limits": {"t": 300}}, NONE._replace(limit=300, poller=True)),
    ],
)
def test_the_policy_lists_tools(listed, kind):
    assert Policy(**listed).kind_of("t") == kind


def test_the_policys_lists_go_before_a_declaration_and_a_name():
    policy = Policy(read_only_tools=["bash"], changing_tools=["t"])
    assert policy.kind_of("bash") == NONE._replace(read_only=True)
    assert policy.kind_of("t", NONE._replace(read_only=True)) == NONE._replace(changing=True)
