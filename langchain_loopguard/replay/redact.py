"""Which parts of a text may be secrets, and must not be shown?

The shapes are those that providers document for their keys, and the places where secrets are
written: `password=`, `Authorization:`, a URL with a password. What has no shape, a password in a
sentence for instance, is not found: that is why content is hidden unless it is asked for.

A pattern is tried only where a text holds the words that it needs, which is quick to tell. Each
has bounded or disjoint repeats, so that the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "[masked]"
"""What stands in a secret's place."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:(?!-----END)[\s\S]){0,20000}(?:-----END (?P=kind)-----)?"
)
_JWT = re.compile(
    r"\beyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,16384}(?:\.[A-Za-z0-9_-]{0,4096})?"
)
_SENDGRID = re.compile(r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}")

_BODIES = {
    # AWS key ids.
    r"[A-Z0-9]{16}\b": "AKIA ASIA AROA AIDA",
    # OpenAI, Anthropic and those that follow them.
    r"[A-Za-z0-9_-]{16,512}": "sk- glpat- pypi- AIza ya29.",
    r"(?:live|test)_[A-Za-z0-9]{10,256}": "pk_ rk_ sk_",
    r"[A-Za-z0-9_]{20,255}": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ hf_ npm_ lsv2_ dop_v1_",
    r"[A-Za-z0-9-]{10,255}": "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-",
    r"[_-]?[A-Za-z0-9_-]{16,255}": "gsk_ xai- tvly- r8_ nvapi- pplx- whsec_ shpat_ dckr_pat_",
}
"""What follows a key's first characters -> the first characters."""

_PREFIXED = [
    (prefix, re.compile(rf"\b{re.escape(prefix)}{body}"))
    for body, prefixes in _BODIES.items()
    for prefix in prefixes.split()
]

_SHAPES: list[tuple[str, re.Pattern[str]]] = [
    ("PRIVATE KEY", _PRIVATE_KEY),
    ("eyJ", _JWT),
    ("SG.", _SENDGRID),
    *_PREFIXED,
]
"""A word that a secret holds -> its shape."""

_URL_PASSWORD = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@?#]{0,200}:)[^\s/@]{1,400}@")

_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"(?:(?:bearer|basic|token|digest)\s{1,4})?)[^\s\"',;]{4,4096}"
    r"|(\bbearer\s{1,4})[A-Za-z0-9._~+/=-]{12,4096}",
    re.IGNORECASE,
)

_NAMES = ("pass", "pwd", "secret", "token", "key", "credential", "sig", "cookie")
_NAMED = re.compile(
    r"((?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?"
    r"|account[_-]?key|private[_-]?key|client[_-]?secret|credentials?|sig|signature|cookie)"
    r"[\"']?\s{0,4}(?:[:=]|=>)\s{0,4})"
    r"(\"[^\"\n]{1,2000}\"?|'[^'\n]{1,2000}'?|[^\s\"',;&)}\]]{1,2000})",
    re.IGNORECASE,
)

_SECRET_KEYS = re.compile(
    r"(?:^|[_\-. ])(?:pass(?:word|wd|phrase)?|pwd|secrets?|tokens?|credentials?|authorization"
    r"|cookie|api[_-]?key|apikey|access[_-]?key|private[_-]?key|account[_-]?key)(?:$|[_\-. ])",
    re.IGNORECASE,
)
_DEEPEST = 100
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def mask_secrets(text: str) -> str:
    """Put `MASK` in the place of whatever has the shape of a secret."""
    for word, shape in _SHAPES:
        if word in text:
            text = shape.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{MASK}@", text)
    lower = text.lower()
    if "authorization" in lower or "bearer" in lower:
        text = _HEADER.sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
    if any(name in lower for name in _NAMES):
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
            mask_secrets(str(key)): (
                MASK if _is_secret_key(key, item) else mask_value(item, depth + 1)
            )
            for key, item in value.items()
        }
    return [mask_value(item, depth + 1) for item in value]


def _masked_value(found: re.Match[str]) -> str:
    quote = found[2][0] if found[2][0] in "\"'" else ""
    end = quote if quote and found[2].endswith(quote) else ""
    return f"{found[1]}{quote}{MASK}{end}"


def _is_secret_key(key: Any, value: Any) -> bool:
    """Tell whether a key is named for a secret; a count of tokens is none."""
    if not isinstance(key, str) or not isinstance(value, str) or not value:
        return False
    return _SECRET_KEYS.search(_CAMEL.sub("_", key)) is not None
