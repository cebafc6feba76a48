"""Is everything read that can be, and is the rest told in a line each?"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import tempfile

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.replay import (
    Conversation,
    Problem,
    read_runs,
    replay,
    streams,
    texts,
)
from tests.replay.made_runs import repeating
from tests.replay.stories import TOLD

LINE = json.dumps(repeating(3).to_dict()) + "\n"
BOM = "\ufeff".encode()


def line(name):
    return json.dumps(repeating(3, name=name).to_dict()).encode() + b"\n"


def read(path, **options):
    """The ids of the runs, and the problems, in order."""
    runs = read_runs([str(path)], **options)
    return [one.id if isinstance(one, Conversation) else one for one in runs]


def read_bytes(folder, content, name="runs.jsonl"):
    path = folder / name
    path.write_bytes(content)
    return read(path)


def only_problem(found):
    [problem] = found
    assert isinstance(problem, Problem)
    return problem.text


def ids(found):
    return [one for one in found if isinstance(one, str)]


# --- Bad input -----------------------------------------------------------------------------------

NOT_READ = {
    "empty": (b"", "empty"),
    "blank lines": (b"\n  \n\n", "empty"),
    "only a BOM": (BOM, "empty"),
    "binary": (b"\x7fELF\x00\x01" * 50, "a binary file"),
    "an image": (b"\x89PNG\r\n\x1a\n", "an image"),
    "a zip archive": (b"PK\x03\x04rest", "zip"),
    "Parquet": (b"PAR1rest", "not a Parquet file"),
    "zstd": (b"\x28\xb5\x2f\xfdrest", "zstd"),
    "UTF-16": (LINE.encode("utf-16"), "save it as UTF-8"),
    "plain text": (b"Dear diary,\nnothing happened.\n", "not JSON"),
    "a truncated line": (LINE.encode()[:60], "not JSON: unexpected end of data"),
    "another JSON object": (b'{"name": "x", "version": 1}', "of no known format"),
    "a number": (b"5", "of no known format"),
    "an empty list": (b"[]", "an empty list"),
    "a list of numbers": (b"[1]", "of no known format"),
    "endless brackets": (b"[" * 100_000, "a list that breaks off or is not JSON after item 0"),
    "nested brackets": (b"[" * 100_000 + b"]" * 100_000, "after item 0: nested too deeply"),
    "a list with a huge number": (b"[" + b"1" * 5_000 + b"]", "a number that is too large"),
    "a huge number": (b'{"n": ' + b"1" * 5_000 + b"}", "not JSON: a number that is too large"),
    "endless braces": (b'{"a":' * 100_000, "not JSON: nested too deeply"),
    "no gzip after all": (b"\x1f\x8bnothing", "cannot be unpacked"),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_cannot_be_read_is_told_in_one_line(name, tmp_path):
    content, text = NOT_READ[name]
    problem = only_problem(read_bytes(tmp_path, content))
    assert text in problem
    assert "\n" not in problem


def test_a_file_that_is_not_there_is_told(tmp_path):
    assert only_problem(read(tmp_path / "none.jsonl")) == "No such file or directory"


def test_a_pattern_that_matches_nothing_is_told(tmp_path):
    assert only_problem(read(tmp_path / "*.jsonl")) == "no file matches"


def test_bad_lines_are_told_by_number_and_the_rest_is_read(tmp_path):
    content = line("a") + b"garbage\n" + b"\n" + line("b") + b'{"a": 1}\n' + line("c")[:-20]
    found = read_bytes(tmp_path, content)
    assert ids(found) == ["a", "b"]
    assert [(one.at, one.text) for one in found if isinstance(one, Problem)] == [
        (2, "not JSON: unexpected character, expected a JSON value (character 1)"),
        (5, "of no known format"),
        (6, "not JSON: unexpected end of data (character 565)"),
    ]


def test_a_bad_first_line_does_not_hide_the_rest(tmp_path):
    found = read_bytes(tmp_path, b"garbage\n" + line("a") + line("b"))
    assert ids(found) == ["a", "b"]


def test_two_bad_first_lines_do_not_hide_the_rest(tmp_path):
    found = read_bytes(tmp_path, b"garbage\ngarbage\n" + line("a") + line("b"))
    assert ids(found) == ["a", "b"]


def test_a_problem_quotes_nothing_of_the_input(tmp_path):
    found = read_bytes(tmp_path, b'{"password": "hunter2"\n' + b'{"pass": hunter2}\n' + line("a"))
    assert "hunter2" not in "".join(str(one) for one in found)


def test_bytes_that_are_no_utf8_are_a_bad_line(tmp_path):
    found = read_bytes(tmp_path, line("a") + line("b").replace(b"search", b"s\xff") + line("c"))
    assert ids(found) == ["a", "c"]


def test_a_list_that_breaks_off_is_read_up_to_there(tmp_path):
    text = json.dumps([repeating(3, name=name).to_dict() for name in "abc"], indent=1)
    found = read_bytes(tmp_path, text[:-30].encode())
    assert ids(found) == ["a", "b"]
    assert "breaks off or is not JSON after item 2" in found[-1].text


def test_a_gzip_stream_that_breaks_off_is_read_up_to_there(tmp_path):
    content = gzip.compress(b"".join(line(f"run {at}") for at in range(2000)))
    found = read_bytes(tmp_path, content[: len(content) // 2])
    assert found[0] == "run 0"
    assert "breaks off" in found[-1].text


def test_a_line_that_is_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MAX_LINE", 2000)
    found = read_bytes(tmp_path, line("a") + b'{"x": "' + b"y" * 5000 + b'"}\n' + line("b"))
    assert ids(found) == ["a", "b"]
    assert "longer than" in found[1].text


def test_a_document_that_is_too_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "MAX_DOCUMENT", 100)
    assert "of more than" in only_problem(read_bytes(tmp_path, line("a")))


def test_a_line_of_100_mb_is_read(tmp_path):
    answer = "x" * (100 * 2**20)
    event = {
        "type": "batch",
        "calls": [{"id": "1", "name": "f", "args": {}}],
        "results": [{"id": "1", "content": answer, "status": "success"}],
    }
    content = json.dumps({"id": "big", "events": [event]}).encode()
    assert read_bytes(tmp_path, content) == ["big"]


def test_a_line_of_100_mb_of_nonsense_is_told(tmp_path):
    assert "not JSON" in only_problem(read_bytes(tmp_path, b"x" * (100 * 2**20)))


@given(st.binary(max_size=300))
def test_no_bytes_raise(content):
    for one in bytes_read(content):
        assert isinstance(one, Conversation | Problem)


@given(st.sampled_from(sorted(TOLD)), st.data())
def test_no_damage_to_a_good_file_raises(name, data):
    content = bytearray(TOLD[name].text.encode())
    at = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.integers(1, 40))
    content[at : at + length] = data.draw(st.binary(max_size=5))
    for one in bytes_read(bytes(content)):
        assert isinstance(one, Conversation | Problem)
        if isinstance(one, Conversation):
            replay(one)


def bytes_read(content):
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return list(read_runs([file.name]))


# --- Good input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(lambda data: data, id="plain"),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(bz2.compress, id="bzip2"),
        pytest.param(lzma.compress, id="xz"),
        pytest.param(
            lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]), id="joined gzip"
        ),
        pytest.param(lambda data: BOM + data, id="BOM"),
        pytest.param(lambda data: gzip.compress(BOM + data), id="BOM in gzip"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="Windows line ends"),
        pytest.param(lambda data: data.rstrip(b"\n"), id="no last line end"),
        pytest.param(lambda data: b"\n\n" + data.replace(b"\n", b"\n\n"), id="blank lines"),
    ],
)
def test_however_it_is_packed_it_is_read(pack, tmp_path):
    assert read_bytes(tmp_path, pack(line("a") + line("b"))) == ["a", "b"]


def test_what_python_writes_beyond_json_is_read(tmp_path):
    told = repeating(1, name="a").to_dict()
    told["events"][1]["calls"][0]["args"] = {"x": float("nan"), "y": "\ud800"}
    assert read_bytes(tmp_path, json.dumps(told).encode()) == ["a"]


def test_a_directory_is_read_in_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/1.jsonl", "c.jsonl.gz", "a.json"):
        content = line(name)
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read(tmp_path) == ["a.json", "c.jsonl.gz", "b/1.jsonl"]


def test_a_pattern_is_read_in_order_of_names(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.txt").write_bytes(line(name))
    assert read(tmp_path / "*.txt") == ["a", "b", "c"]


def test_a_file_that_only_lies_in_the_directory_is_no_fault(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "index.jsonl").write_text('{"name": "x"}\n{"name": "y"}\n')
    (tmp_path / "run.json").write_bytes(line("a"))
    found = read(tmp_path)
    assert ids(found) == ["a"]
    assert [one.ignored for one in found if isinstance(one, Problem)] == [True, True]


def test_a_directory_without_files_to_read_is_told(tmp_path):
    assert "no file to read" in only_problem(read(tmp_path))


def test_the_standard_input_is_read(monkeypatch):
    packed = io.BufferedReader(io.BytesIO(gzip.compress(line("a"))))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    assert read("-") == ["a"]


def test_a_run_without_an_id_is_named_after_its_place(tmp_path):
    told = {"events": [json.loads(LINE)["events"][1]]}
    content = (json.dumps(told) + "\n").encode() * 2
    assert read_bytes(tmp_path, content) == ["line 1", "line 2"]
    assert read_bytes(tmp_path, json.dumps(told).encode(), name="my run.json") == ["my run"]


@pytest.mark.parametrize("address", ["memory://runs/a.jsonl", "memory://runs/*.jsonl"])
def test_an_address_without_fsspec_is_a_problem_that_names_the_extra(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    told = only_problem(read(address))
    assert "an address needs fsspec: pip install 'langchain-loopguard[fleet]'" in str(told)


@pytest.mark.slow
def test_an_address_is_read_through_fsspec(tmp_path):
    with fsspec.open("memory://runs/a.jsonl", "wb") as file:
        file.write(line("a"))
    assert read("memory://runs/a.jsonl") == ["a"]
    assert read("memory://runs/*.jsonl") == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("address", ["nope://x/y.jsonl", "memory://none.jsonl"])
def test_an_address_that_leads_nowhere_is_told(address):
    assert only_problem(read(address))


# --- Long input ----------------------------------------------------------------------------------


def test_a_long_list_is_read_item_by_item(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_STREAMED", 1000)
    names = [f"run {at}" for at in range(200)]
    text = json.dumps([repeating(3, name=name).to_dict() for name in names])
    assert read_bytes(tmp_path, text.encode()) == names


def test_a_long_list_of_messages_stays_one_run(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_STREAMED", 1000)
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    turn = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "x"}]
    assert len(read_bytes(tmp_path, json.dumps(turn * 300).encode())) == 1


def test_nested_brackets_in_a_long_list_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_STREAMED", 1000)
    found = read_bytes(tmp_path, b"[" + line("a") + b"," + b"[" * 50_000)
    assert ids(found) == ["a"]
    assert "after item 1" in found[-1].text


def test_a_session_is_not_torn_by_cutting_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_PIECE", 500)
    lines = [
        {
            "type": "user",
            "sessionId": session,
            "uuid": f"{session}{at}",
            "message": {"content": "x"},
        }
        for session in ("s1", "s2", "s3")
        for at in range(50)
    ]
    content = "\n".join(json.dumps(one) for one in lines).encode()
    found = read_bytes(tmp_path, content)
    assert ids(found) == ["s1", "s2", "s3"]
    assert found[-1].text == "no call was found in any of the 3 runs"
