"""Are known shapes of secrets masked, and is the rest left alone?"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.langchain.masks import MASK, mask_secrets, mask_value, visible

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


ORACLE = {
    "AWS": "AKIA" + "QWERTYUIOPASDF12",
    "Artifactory": "AKC" + "p8abcdef1234567",
    "Artifactory password": "AP" + "6xyz12345678abc",
    "Azure storage": "AccountKey=" + "a1B2" * 22,
    "Discord bot": "M" + "TEzNDU2Nzg5MDEyMzQ1Njc4" + ".GabcDe." + "x1" * 13 + "y",
    "GitHub": "ghs" + "_" + BODY,
    **{f"GitLab {kind}": f"gl{kind}-" + "Ab1" * 8 for kind in ("pat", "dt", "ft", "soat", "rt")},
    "Mailchimp": "0123456789abcdef" * 2 + "-us12",
    "npm": "//registry.example/:_authToken=npm" + "_" + BODY,
    "OpenAI": "sk-" + "A1b2C3d4E5f6G7h8I9j0" + "T3BlbkFJ" + "A1b2C3d4E5f6G7h8I9j0",
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + "A1" * 40,
    "SendGrid": "SG" + "." + "a" * 22 + "." + "b" * 43,
    "Slack": "xoxb" + "-1234-5678-abcdef",
    "Slack web hook": "https://hooks.slack.com" + "/services/T0001/B0001/abcdef123456",
    "SoftLayer": "https://api.softlayer.com" + "/soap/v3/" + "a1" * 32,
    "Square": "sq0csp" + "-" + "a1B" * 14 + "z",
    "Stripe": "sk" + "_live_" + "A1b2C3d4" * 3,
    "Telegram": "123456789:" + "AAb_1" * 7,
    "Twilio": "AC" + "0123456789abcdef" * 2,
    "URL": "https://user:hunter2@host.example",
    "private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "keyword": "db_password = 'hunter2-hunter2'",
    "service key": 'service_key: "hunter2-hunter2"',
}


@pytest.mark.parametrize("name", ORACLE)
def test_what_detect_secrets_finds_is_masked(name):
    found = pytest.importorskip("detect_secrets.core.scan").scan_line
    with pytest.importorskip("detect_secrets.settings").default_settings() as settings:
        settings.disable_plugins("Base64HighEntropyString", "HexHighEntropyString")
        assert list(found(ORACLE[name]))
        assert [one for one in found(mask_secrets(ORACLE[name])) if one.secret_value != MASK] == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param(r'{"a": "{\"password\": \"hunter2\"}"}', "hunter2", id="JSON in JSON"),
        pytest.param(r'"{\\\"token\\\": \\\"hunter2\\\"}"', "hunter2", id="twice"),
        pytest.param("mysql://app:p@ss/w0rd@db.example/x", "w0rd", id="URL with @ and /"),
        pytest.param("deploy --password hunter2 --force", "hunter2", id="option"),
        pytest.param("SECRET_KEY=hunter2", "hunter2", id="environment"),
        pytest.param("https://" + "Ab1" * 9 + "@git.example/x", "Ab1Ab1", id="token in a URL"),
        pytest.param(
            "-----BEGIN PRIVATE KEY-----\n" + "MIIE-x" * 9000 + "\n-----END PRIVATE KEY-----",
            "MIIE",
            id="a key of 54,000 characters",
        ),
    ],
)
def test_a_secret_is_masked_wherever_it_is_written(text, secret):
    assert secret not in mask_secrets(text)


def test_characters_that_turn_text_round_are_shown_as_such():
    assert visible("a\u202eb\x1b[31m\u200d") == "a<U+202E>b<U+001B>[31m\u200d"


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
