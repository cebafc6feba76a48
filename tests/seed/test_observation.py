"""Are tools classified by their names as the tables say?"""

import pytest

from langchain_loopguard.seed.observation import (
    DEFAULT_OBSERVATION_TOOLS,
    is_costly_batch,
    is_observation_batch,
)

LOOKING = [
    *DEFAULT_OBSERVATION_TOOLS,
    "2:read_file",
    "mcp_filesystem_read_text_file",
    "list_directory_with_sizes",
    "playwright_mcp_browser_snapshot",
    "READ_FILE",
    "get_clickable_elements",
]
CHANGING = [
    "thread_create",
    "listen_port",
    "set_global_config",
    "preview_changes",
    "write_file",
    "edit_file",
    "run_in_terminal",
    "execute_command",
    "bash",
    "",
]
COSTLY = [
    "navigate",
    "click",
    "fetch_webpage",
    "browser_navigate",
    "mcp__playwright__click",
    "BROWSER_NAVIGATE",
    "navigate_to_url",
    "browser-click",
    "page.click",
    "fetch-webpage",
    "a.fetch__webpage-b",
]
CHEAP = [
    "get_clickable_elements",
    "clickhouse_query",
    "browserNavigate",
    "read_file",
    "fetch_a_webpage",
    "webpage_fetch",
    "fetch",
    "",
]


def batch(*names):
    return [{"name": name, "args": {}, "id": "c0"} for name in names]


@pytest.mark.parametrize("name", LOOKING)
def test_a_tool_that_only_looks(name):
    assert is_observation_batch(batch(name), DEFAULT_OBSERVATION_TOOLS)


@pytest.mark.parametrize("name", CHANGING)
def test_a_tool_that_may_change_something(name):
    assert not is_observation_batch(batch(name), DEFAULT_OBSERVATION_TOOLS)


def test_the_default_patterns_are_the_published_ones():
    assert len(DEFAULT_OBSERVATION_TOOLS) == len(set(DEFAULT_OBSERVATION_TOOLS)) == 26


def test_a_batch_only_looks_when_every_call_does():
    assert is_observation_batch(batch("read_file", "list_dir"), DEFAULT_OBSERVATION_TOOLS)
    assert not is_observation_batch(batch("read_file", "bash"), DEFAULT_OBSERVATION_TOOLS)


def test_patterns_replace_the_default():
    assert is_observation_batch(batch("my_peek_tool"), ["PEEK"])
    assert not is_observation_batch(batch("read_file"), ["PEEK"])


@pytest.mark.parametrize("patterns", [[], ()])
def test_without_patterns_no_tool_only_looks(patterns):
    assert not is_observation_batch(batch("read_file"), patterns)
    assert not is_observation_batch([], patterns)


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_tool(name):
    assert is_costly_batch(batch(name))


@pytest.mark.parametrize("name", CHEAP)
def test_a_tool_that_is_not_costly(name):
    assert not is_costly_batch(batch(name))


def test_a_batch_is_costly_when_any_call_is():
    assert is_costly_batch(batch("read_file", "click"))
    assert not is_costly_batch([])


@pytest.mark.parametrize("call", [{}, {"name": None}, {"name": 5}, None, "read_file"])
def test_an_odd_call_is_a_tool_that_may_change_something(call):
    assert not is_observation_batch([call], DEFAULT_OBSERVATION_TOOLS)
    assert not is_costly_batch([call])
