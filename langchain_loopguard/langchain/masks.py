"""Parts of a text that may be secrets, or that steer a terminal, and must not be shown.

The shapes are those that providers document for their keys, and the places where secrets are
written: `password=`, `--token X`, `Authorization:`, a URL with a password. What has no shape, a
password in a sentence for instance, is not found: that is why content is hidden unless it is
asked for. The tests hold the shapes against what `detect-secrets` finds.

A pattern is tried only where a text holds the words that it needs, which is quick to tell. Each
has bounded, possessive or disjoint repeats, so that the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "[masked]"
"""What stands in a secret's place."""

_BODIES = {
    r"[A-Z0-9]{16}\b": "AKIA ASIA AROA AIDA ABIA ACCA",  # AWS key ids.
    # OpenAI, Anthropic and those that follow them; GitLab.
    r"[A-Za-z0-9_-]{16,1024}": "sk- pypi- AIza ya29. glpat- gldt- glft- glsoat- glrt- glcbt- "
    "glimt- glptt- glagent- gloas- GR1348941 sq0csp- sq0atp-",
    r"(?:live|test)_[A-Za-z0-9]{10,256}": "pk_ rk_ sk_",
    r"[A-Za-z0-9_]{20,255}": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ hf_ npm_ lsv2_ dop_v1_",
    r"[A-Za-z0-9-]{10,255}": "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-",
    r"[_-]?[A-Za-z0-9_-]{16,255}": "gsk_ xai- tvly- r8_ nvapi- pplx- whsec_ shpat_ dckr_pat_",
    r"[a-z0-9]{32}\b": "AC SK",  # Twilio.
    r"[A-Za-z0-9]{10,255}": "AKC",  # Artifactory.
}
"""What follows a key's first characters -> the first characters."""

_SHAPES: list[tuple[str, re.Pattern[str]]] = [
    (
        "PRIVATE KEY",
        # Whole, however long it is; one that is cut off goes on to the end.
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]|-(?!----END))*+(?:-----END [A-Z0-9 ]{0,60}-----)?"
        ),
    ),
    ("PRIVATE KEY", re.compile(r"BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?")),
    ("eyJ", re.compile(r"\beyJ[\w-]{8,4096}\.eyJ[\w-]{8,16384}(?:\.[\w-]{0,4096})?", re.ASCII)),
    ("SG.", re.compile(r"\bSG\.[\w-]{16,64}\.[\w-]{16,128}", re.ASCII)),
    ("A3T", re.compile(r"\bA3T[A-Z0-9]{17}\b")),
    ("AP", re.compile(r"\bAP[\dA-F](?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{8,255}\b")),
    ("-us", re.compile(r"\b[0-9a-z]{32}-us[0-9]{1,2}\b")),
    (":", re.compile(r"\b\d{8,10}:[\w-]{35}(?![\w-])", re.ASCII)),  # A Telegram bot.
    (".", re.compile(r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,40}", re.ASCII)),  # A Discord bot.
    # Whoever knows a web hook's address may post there.
    ("hooks.slack.com/", re.compile(r"(?<=hooks\.slack\.com/)[^\s\"'<>]{1,400}")),
    ("/api/webhooks/", re.compile(r"(?<=/api/webhooks/)\d{1,30}/[\w-]{1,200}", re.ASCII)),
    ("webhook.office.com/", re.compile(r"(?<=webhook\.office\.com/)[^\s\"'<>]{1,400}")),
    ("softlayer.com/", re.compile(r"(?<=softlayer\.com/)soap/v[\d.]{1,4}/[a-z0-9]{64}")),
    *(
        (start, re.compile(rf"\b{re.escape(start)}{body}"))
        for body, starts in _BODIES.items()
        for start in starts.split()
    ),
]
"""A word that a secret holds -> its shape."""

# The password may hold `@` and `/`; a port followed by a path is none.
_URL_PASSWORD = re.compile(
    r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@?#]{0,200}:)(?!\d{1,5}/)[^\s\"'<>]{1,400}@"
)
_URL_TOKEN = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://)[^\s:/@?#]{16,400}@")

_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?"
    r"(?:(?:bearer|basic|token|digest)\s{1,4})?)[^\s\"'\\,;]{4,4096}"
    r"|(\bbearer\s{1,4})[A-Za-z0-9._~+/=-]{12,4096}",
    re.IGNORECASE,
)

_WORDS = ("pass", "pwd", "secret", "token", "key", "credential", "sig", "cookie", "contrase")
_NAME = (
    r"(?:(?:password|passwd|passphrase|pwd|secret|contrase(?:ñ|n)a|client[_-]?secret|credential"
    r"|(?:api|auth|service|account|db|database|priv|private|client|access|encryption|signing"
    r"|master|license|shared)[_-]?key)[\w-]{0,40}"
    r"|token(?!s\b|s_|iz)[\w-]{0,40}|(?:db|database|key)[_-]?pass|(?<![a-z])pass"
    r"|(?<![a-z])sig|signature|cookie)"
)
_ESCAPED = r"\\{0,15}"
_NAMED = re.compile(
    rf"((?:--?{_NAME}\s{{1,4}}(?!-)"
    # A word behind a colon or an equals sign, in JSON within JSON too.
    rf"|{_NAME}[\])]{{0,2}}{_ESCAPED}[\"']?[\])]{{0,2}}"
    r"\s{0,4}(?::=|=>|==|!=|[:=]|\((?=\s{0,4}[\"']))\s{0,4}))"
    rf"({_ESCAPED}\"[^\"\n]{{1,4000}}\"?|{_ESCAPED}'[^'\n]{{1,4000}}'?"
    r"|[^\s\"',;&)}\]\\]{1,4000})",
    re.IGNORECASE,
)

_SECRET_KEYS = re.compile(
    r"(?:^|[_\-. ])(?:pass(?:word|wd|phrase)?|pwd|secrets?|tokens?|credentials?|authorization"
    r"|cookie|(?:api|auth|access|private|account|client|signing|encryption)[_-]?key|apikey)"
    r"(?:$|[_\-. ])",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"tokens?$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DEEPEST = 100

_JOINERS = "\u200c\u200d"
"""Without them the letters of some languages, and emoji, fall apart; they turn nothing round."""


def mask_secrets(text: str) -> str:
    """Put `MASK` in the place of whatever has the shape of a secret."""
    for word, shape in _SHAPES:
        if word in text:
            text = shape.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{MASK}@", text)
        text = _URL_TOKEN.sub(rf"\g<1>{MASK}@", text)
    lower = text.lower()
    if "authorization" in lower or "bearer" in lower:
        text = _HEADER.sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
    if any(word in lower for word in _WORDS):
        text = _NAMED.sub(_masked_value, text)
    return text


def mask_value(value: Any, depth: int = 0) -> Any:
    """Mask the texts in a JSON value, keys included; a key named for a secret hides its value.

    Args:
        value: The value.
        depth: How deep it is nested in the whole; what is nested too deep is masked altogether.
    """
    if isinstance(value, str):
        return mask_secrets(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth >= _DEEPEST:
        return MASK
    if isinstance(value, dict):
        return {
            mask_secrets(str(key)): (MASK if _is_secret(key, item) else mask_value(item, depth + 1))
            for key, item in value.items()
        }
    return [mask_value(item, depth + 1) for item in value]


def visible(text: str, *, keep: str = "") -> str:
    r"""Write characters that steer a terminal, or turn text round, by their numbers.

    Args:
        text: The text.
        keep: Such characters that stay, `"\n\t"` for instance.
    """
    if text.isprintable():
        return text
    keep += _JOINERS
    return "".join(
        one if one.isprintable() or one in keep else f"<U+{ord(one):04X}>" for one in text
    )


def shown_name(text: str, longest: int = 300) -> str:
    """Return a name of unknown origin as it may be shown in one line: masked, visible, cut."""
    return shortened(visible(mask_secrets(text[: 2 * longest])), longest)


def shortened(text: str, longest: int) -> str:
    """Cut a text; one that was cut ends with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _masked_value(found: re.Match[str]) -> str:
    value = found[2]
    bare = value.lstrip("\\")
    opened = value[: len(value) - len(bare)] + (bare[0] if bare[0] in "\"'" else "")
    if opened and bare[0] in "\"'" and value.endswith(bare[0]) and len(bare) > 1:
        inner = value[: -len(bare[0])]
        closed = inner[len(inner.rstrip("\\")) :] + bare[0]
        return f"{found[1]}{opened}{MASK}{closed}"
    return f"{found[1]}{opened}{MASK}"


def _is_secret(key: Any, value: Any) -> bool:
    """Return whether a key is named for a secret; a count of tokens is none."""
    if not isinstance(key, str) or value in (None, "") or isinstance(value, bool):
        return False
    named = _CAMEL.sub("_", key)
    if isinstance(value, int | float | dict | list) and _COUNTED.search(named):
        return False
    return _SECRET_KEYS.search(named) is not None
