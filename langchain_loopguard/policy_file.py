"""How does a policy get into a file and out of it?

A policy file is JSON: the fields of `LoopGuardPolicy`, each rule with its numbers. What is missing
has its default. Kept apart from the policy, which does no I/O.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from langchain_loopguard.core.invalid import in_words
from langchain_loopguard.core.policy import LoopGuardPolicy

if TYPE_CHECKING:
    import os

_DEFAULT = "default"


class PolicyFileError(ValueError):
    """A file holds no policy; the message names the file and each field that is wrong."""


def read_policy(path: str | os.PathLike[str]) -> LoopGuardPolicy:
    """Read a policy from a file.

    Raises:
        OSError: If the file can't be read.
        PolicyFileError: If it is not JSON or not a policy.
    """
    data = None
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        return LoopGuardPolicy.model_validate(data)
    except ValidationError as error:
        raise PolicyFileError(f"{path}: not a policy: {in_words(error, data)}") from error
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{path}: not JSON: {error}") from error


def write_policy(policy: LoopGuardPolicy, path: str | os.PathLike[str]) -> None:
    """Write a policy to a file that `read_policy` reads; an existing file is replaced.

    Raises:
        OSError: If the file can't be written.
    """
    Path(path).write_text(policy_text(policy), encoding="utf-8")


def policy_text(policy: LoopGuardPolicy) -> str:
    """Give the text of a policy's file."""
    return json.dumps(policy.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def named_policy(name: str) -> LoopGuardPolicy:
    """Give the policy of a command line: `default`, a preset's name, or a file.

    Raises:
        ValueError: If it is none of them; the message lists the names.
        OSError: If the file can't be read.
    """
    plain = _plain(name)
    if plain == _DEFAULT:
        return LoopGuardPolicy()
    if plain in LoopGuardPolicy.preset_names():
        return LoopGuardPolicy.preset(plain)
    # An empty name would be this directory as a path.
    if not plain or not Path(name).exists():
        names = ", ".join((_DEFAULT, *LoopGuardPolicy.preset_names()))
        shown = name if plain else repr(name)
        raise ValueError(f"{shown}: neither a file nor a policy's name; the names are {names}")
    return read_policy(name)


def files_of(name: str) -> list[str]:
    """List the file that `named_policy` reads; it reads none for a policy's name."""
    return [] if _plain(name) in {_DEFAULT, *LoopGuardPolicy.preset_names()} else [name]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
