"""Is it known what kind of tool a call is for?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.tools import (
    CHANGING_VERBS,
    READING_NOUNS,
    READING_VERBS,
    SHELL_WORDS,
    ToolTraits,
    declared_traits,
    traits_of_name,
    waits,
)

READS = ToolTraits(read_only=True)
CHANGES = ToolTraits()
SHELL = CHANGES._replace(**{"shell": True})  # noqa: PIE804 - ruff takes it for a subprocess
WAITS = ToolTraits(read_only=True, poller=True)


def table(kind, names):
    return [pytest.param(name, kind, id=f"name: {name}") for name in names.split()]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *table(
            READS,
            "read_file readFile ReadFile read-file READ_FILE fs.read_file mcp__fs__read_file "
            "search list_dir get_user fetch grep describe_table view web_search browser_snapshot "
            "git_status git_log BashOutput directory_tree screenshot check_build scroll_down "
            "calculate load_page print_report open find_file show_code get_test_report "
            "list_commands inspect_shell check_and_report",
        ),
        *table(
            CHANGES,
            "edit_file write_file insert create_user delete submit_order click press_key undo "
            "set_status reset_log update_page send_mail get_or_create read_and_delete str_replace "
            "frobnicate job_state thread_create enlist_user preview_changes write_todos task "
            "move put goodbye transfer_to_human run_report execute_order make_page",
        ),
        *table(
            SHELL,
            "bash Bash shell run_command execute_bash terminal python python_repl run execute sh "
            "exec run_shell_command execute_code run_tests pytest run_script ipython zsh cmd "
            "powershell jupyter_console commands",
        ),
        *table(READS._replace(thinking=True), "think"),
        *table(WAITS, "sleep wait wait_for_build sleep_seconds waitUntil"),
    ],
)
def test_the_words_of_a_name_say_what_a_tool_is(name, kind):
    assert traits_of_name(name) == kind


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=what)
        for what, name in {
            "empty": "",
            "digits": "123",
            "signs": "___--..//::",
            "very long": "read" * 100_000,
            "not ascii": "读取文件",
            "emoji": "🔥",
            "a lone surrogate": "\ud800",
            "a null": "\0read",
            "line ends": "re\nad",
            "a pattern": "(?:a+)+$",
            "letters without end": "aA" * 50_000,
        }.items()
    ],
)
def test_an_odd_name_says_nothing_or_what_its_words_say(name):
    assert traits_of_name(name) in (CHANGES, READS)


@given(st.text(max_size=60))
def test_any_name_has_traits_and_reading_is_no_shell(name):
    traits = traits_of_name(name)
    assert not (traits.read_only and traits.shell)


def test_no_word_reads_and_changes():
    assert not READING_VERBS & CHANGING_VERBS
    assert not (READING_VERBS | READING_NOUNS) & SHELL_WORDS


# --- Declarations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "metadata", "expected"),
    [
        pytest.param("job", {"readOnlyHint": True}, READS, id="MCP, at the top"),
        pytest.param("job", {"annotations": {"readOnlyHint": True}}, READS, id="MCP, below"),
        pytest.param("read", {"readOnlyHint": False}, CHANGES, id="MCP, it changes"),
        pytest.param("job", {"loop_guard": {"read_only": True}}, READS, id="our own"),
        pytest.param("job", {"loop_guard": {"shell": True}}, SHELL, id="a shell"),
        pytest.param("job", {"loop_guard": {"poller": True}}, ToolTraits(poller=True), id="poller"),
        pytest.param(
            "job", {"loop_guard": {"thinking": True}}, ToolTraits(thinking=True), id="thinking"
        ),
        pytest.param("sleep", {"loop_guard": {"poller": False}}, READS, id="no poller"),
        pytest.param("bash", {"loop_guard": {"shell": False}}, CHANGES, id="no shell"),
        pytest.param("bash", {"readOnlyHint": True}, READS, id="reading is no shell"),
        pytest.param(
            "job",
            {"readOnlyHint": True, "loop_guard": {"read_only": False}},
            CHANGES,
            id="our own beats MCP's",
        ),
        pytest.param(
            "job",
            {"readOnlyHint": True, "annotations": {"readOnlyHint": False}},
            CHANGES,
            id="what is below beats what is at the top",
        ),
        pytest.param(
            "read_file", {"loop_guard": {"poller": True}}, WAITS, id="the rest is the name's"
        ),
    ],
)
def test_what_a_tool_declares(name, metadata, expected):
    assert declared_traits(name, metadata) == expected


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        "readOnlyHint",
        [("readOnlyHint", True)],
        {"readOnlyHint": "yes"},
        {"readOnlyHint": 1},
        {"readOnlyHint": None},
        {"annotations": "readOnlyHint"},
        {"annotations": {"destructiveHint": True}},
        {"loop_guard": True},
        {"loop_guard": {"read_only": "yes"}},
        {"loop_guard": {"reads": True}},
    ],
)
def test_what_declares_nothing(metadata):
    assert declared_traits("job", metadata) is None


# --- Which word counts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "name", "expected"),
    [
        ({}, "read_file", CHANGES),  # as declared
        ({"read_only_tools": ("read_file",)}, "read_file", READS),
        ({"read_only_tools": ("bash",)}, "bash", READS),
        ({"changing_tools": ("read_log",)}, "read_log", CHANGES),
        ({"shell_tools": ("read_log",)}, "read_log", SHELL),
        ({"shell_tools": ("sleep",)}, "sleep", SHELL._replace(poller=True)),
        ({"poll_tools": ("job",)}, "job", ToolTraits(poller=True)),
        ({"shell_tools": ("think",)}, "think", SHELL._replace(thinking=True)),
        ({"poll_tools": ("read_log",)}, "read_log", WAITS),
        ({"changing_tools": ("bash",)}, "bash", SHELL),
        ({"changing_tools": ("job",), "shell_tools": ("job",)}, "job", SHELL),
        ({"read_only_tools": ("other",)}, "job", CHANGES),
        ({"read_only_tools": ("JOB",)}, "job", CHANGES),
    ],
)
def test_the_policys_lists_beat_declarations_which_beat_names(lists, name, expected):
    guard = LoopGuard(LoopGuardPolicy(**lists))
    if name == "read_file":
        guard.declare(name, {"readOnlyHint": False})
    (found,) = guard.check([{"name": name, "args": {}, "id": "1"}]).record.traits
    assert found == expected


def test_a_declaration_holds_from_the_next_call_on():
    guard = LoopGuard()
    call = [{"name": "job", "args": {}, "id": "1"}]
    before = guard.check(call).record.traits
    guard.declare("job", {"readOnlyHint": True})
    assert (before, guard.check(call).record.traits) == ((CHANGES,), (READS,))


def test_a_declaration_that_says_nothing_takes_nothing_back():
    guard = LoopGuard()
    guard.declare("job", {"readOnlyHint": True})
    guard.declare("job", {})
    assert guard.check([{"name": "job", "args": {}, "id": "1"}]).record.traits == (READS,)


def test_names_without_end_do_not_fill_memory():
    guard = LoopGuard()
    for n in range(3000):
        guard.check([{"name": f"tool_{n}", "args": {}, "id": "1"}])
    assert len(guard._tools) <= 1024


@pytest.mark.parametrize(
    ("name", "command", "waited"),
    [
        ("bash", "sleep 60 && gh run view 1", True),
        ("bash", "gh run view 1; sleep 5", True),
        ("execute_code", "import time\ntime.sleep(5)", True),
        ("powershell", "Start-Sleep -Seconds 5; Get-Job", True),
        ("bash", "grep -r sleep src", False),
        ("bash", "cat asleep.txt", False),
        ("edit_file", "sleep 60", False),
        ("read_file", "sleep 60", False),
    ],
)
def test_a_shell_command_may_wait_by_itself(name, command, waited):
    arguments = canonical_arguments({"command": command})
    assert waits(traits_of_name(name), arguments) is waited


@pytest.mark.parametrize("name", ["think", "sequentialthinking", "sequential_thinking", "Reflect"])
def test_tools_that_take_down_thoughts_are_known_by_their_names(name):
    assert traits_of_name(name).thinking


@pytest.mark.parametrize("name", ["rethink_layout", "things", "reasons", ""])
def test_others_are_not(name):
    assert not traits_of_name(name).thinking
