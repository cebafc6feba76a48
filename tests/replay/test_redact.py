"""Are known shapes of secrets masked, and is the rest left alone?"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.replay.redact import MASK, mask_secrets, mask_value

# Put together here, so that no scanner takes this file for a leak.
BODY = "Ab1" * 12
SECRETS = {
    "OpenAI key": "sk-" + "proj-" + BODY,
    "Anthropic key": "sk-" + "ant-api03-" + BODY,
    "AWS key id": "AKIA" + "ABCDEFGHIJKLMNOP",
    "GitHub token": "ghp" + "_" + BODY,
    "GitHub fine-grained token": "github" + "_pat_" + BODY,
    "GitLab token": "glpat" + "-" + BODY,
    "Slack token": "xoxb" + "-123456789012-" + BODY,
    "Google key": "AIza" + "Ab1-" * 8 + "Abc",
    "Google token": "ya29" + "." + BODY,
    "Stripe key": "sk" + "_live_" + BODY,
    "Hugging Face token": "hf" + "_" + BODY,
    "npm token": "npm" + "_" + BODY,
    "PyPI token": "pypi" + "-" + BODY,
    "LangSmith key": "lsv2" + "_pt_" + BODY,
    "SendGrid key": "SG" + "." + "a" * 22 + "." + "b" * 43,
    "Groq key": "gsk" + "_" + BODY,
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".c2lnbmF0dXJl",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
    "cut private key": "-----BEGIN " + "PRIVATE KEY-----\nMIIEabc",
}

IN_PLACES = {
    "URL": ("postgres://app:{}@db.example/x", "hunter2-pass"),
    "URL without a user": ("redis://:{}@cache:6379", "hunter2"),
    "header": ("Authorization: Bearer {}", "hunter2hunter2"),
    "header in JSON": ('{{"Authorization": "Basic {}"}}', "aHVudGVyMg=="),
    "curl": ("curl -H 'Authorization: token {}' x", "hunter2hunter2"),
    "assignment": ("password={}", "hunter2"),
    "environment": ("export DB_PASSWORD={} && run", "hunter2"),
    "JSON": ('{{"client_secret": "{}"}}', "hunter2 and more"),
    "YAML": ("api_key: {}", "hunter2"),
    "camel case": ('{{"accessToken":"{}"}}', "hunter2"),
    "AWS secret": ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG"),
    "connection string": ("AccountKey={};EndpointSuffix=x", "abc123=="),
    "query": ("https://x.example/?sig={}&a=1", "hunter2"),
    "Python": ("token='{}'", "hunter2"),
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("around", ["{}", "key is {} here", "x={}", '"{}"', "({})", "{}\nnext"])
def test_a_secret_with_a_shape_is_masked(name, around):
    secret = SECRETS[name]
    masked = mask_secrets(around.format(secret))
    assert MASK in masked
    assert secret[8:20] not in masked


@pytest.mark.parametrize("name", IN_PLACES)
def test_a_secret_in_a_known_place_is_masked(name):
    place, secret = IN_PLACES[name]
    masked = mask_secrets(place.format(secret))
    assert MASK in masked
    assert secret not in masked


def test_what_surrounds_a_secret_stays():
    assert mask_secrets("a postgres://app:pw1@db/x z") == f"a postgres://app:{MASK}@db/x z"
    assert mask_secrets('{"password": "pw1", "a": 1}') == f'{{"password": "{MASK}", "a": 1}}'


@pytest.mark.parametrize(
    "text",
    [
        "git status --short",
        "src/app/main.py | 12 ++++++------",
        "550e8400-e29b-41d4-a716-446655440000",
        "3fa1b2c4d5e6f708192a3b4c5d6e7f8091a2b3c4",
        "https://example.com/a/b?c=1#d",
        "http://localhost:8000/x",
        "max_tokens: the number of tokens",
        "the task-list and the risk-assessment",
        "def tokenize(text): pass",
        "2026-01-01T00:00:00Z",
    ],
)
def test_ordinary_text_stays(text):
    assert mask_secrets(text) == text


def test_a_key_that_is_named_for_a_secret_hides_its_value():
    value = {"user": "me", "apiKey": "short", "nested": [{"DB_PASSWORD": "x"}], "tokens": 12}
    assert mask_value(value) == {
        "user": "me",
        "apiKey": MASK,
        "nested": [{"DB_PASSWORD": MASK}],
        "tokens": 12,
    }


def test_a_value_that_is_nested_very_deep_is_masked_below():
    value = "bottom"
    for _ in range(5000):
        value = [value]
    assert MASK in repr(mask_value(value))


@given(st.text())
def test_any_text_can_be_masked(text):
    assert isinstance(mask_secrets(text), str)


@given(st.text())
def test_masking_twice_changes_nothing(text):
    once = mask_secrets(text)
    assert mask_secrets(once) == once


HOSTILE = [
    "-----BEGIN PRIVATE KEY-----" ,
    "-----BEGIN A",
    "eyJaaaaaaaa.",
    "eyJ" + "a" * 50,
    "sk-",
    "a:",
    "http://a:",
    "a://b:c",
    "password=",
    "password = ",
    'password="',
    "Authorization: ",
    "bearer " ,
    "xoxb-",
    "A" * 40,
    "a-b_c.",
    " ",
    "\n",
    '"',
]  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_the_time_grows_with_the_length_and_no_faster(part):
    def seconds(length):
        text = (part * (length // len(part) + 1))[:length]
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            mask_secrets(text)
            best = min(best, time.process_time() - start)
        return best

    # Ten times the text: a square would take a hundred times as long.
    assert seconds(100_000) < 40 * max(seconds(10_000), 0.001)
