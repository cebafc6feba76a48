"""The policy that people use: the core's, with other systems' rules by name, and files.

A policy file is JSON: the fields of `LoopGuardPolicy`, each rule with its numbers. What is missing
has its default. The core's policy knows neither files nor other systems.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from langchain_loopguard.core.invalid import in_words
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.presets import PRESETS, RULE_NAMES, preset, rule_type

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from langchain_loopguard.core.rules import RuleConfig

__all__ = ["LoopGuardPolicy", "PolicyFileError", "files_of", "named_policy", "policy_text"]

_DEFAULT = "default"


class PolicyFileError(ValueError):
    """A file holds no policy; the message names the file and each field that is wrong."""


class _RuleTypes(dict[str, "type[RuleConfig]"]):
    """The guard's own rules, and other systems', which are imported when they are looked up."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in RULE_NAMES

    def __iter__(self) -> Iterator[str]:
        return iter((*super().__iter__(), *RULE_NAMES))

    def __missing__(self, name: str) -> type[RuleConfig]:
        return rule_type(name)


class LoopGuardPolicy(Policy):
    """What counts as a loop, and how often a refused loop may come again.

    Without arguments it is the measured default: it warns early, asks late, and
    interrupted no good run of those it was measured on. `preset` has the rules of other systems.

    Raises:
        pydantic.ValidationError: At construction, naming the field and the allowed values.
    """

    @classmethod
    def rule_types(cls) -> dict[str, type[RuleConfig]]:
        """Return the rules that a policy may list: name -> the model of its numbers."""
        return _RuleTypes(super().rule_types())

    @classmethod
    def preset_names(cls) -> tuple[str, ...]:
        """Return the names that `preset` knows."""
        return tuple(PRESETS)

    @classmethod
    def preset(cls, name: str, **options: Any) -> Self:
        """Make a policy of the rules of another system and nothing else.

        Args:
            name: One of `preset_names`; `-` and `_` make no difference.
            options: The policy's other fields.

        Raises:
            ValueError: If there is no preset of that name; the message lists those there are.
        """
        return cls._alone(preset(name).rules, options)

    @classmethod
    def seed(cls, **options: Any) -> Self:
        """Make a policy of the seed's detector: it asks at the first loop, and never warns.

        Args:
            options: The policy's other fields.
        """
        return cls.preset("seed", **options)

    @classmethod
    def signals(cls, **options: Any) -> Self:
        """Make a policy of opencode's signals A, B and C: equal results, nothing new, same error.

        Args:
            options: The policy's other fields.
        """
        return cls.preset("signals", **options)

    @classmethod
    def hermes(cls, *, hard_stop: bool = False, **options: Any) -> Self:
        """Make a policy of the three detectors of hermes' published guard, which warns first.

        Args:
            hard_stop: Whether calls are stopped and runs ended too.
            options: The policy's other fields.
        """
        rule = rule_type("hermes").model_validate({"hard_stop_enabled": hard_stop})
        return cls._alone((rule,), options)

    @classmethod
    def _alone(cls, rules: tuple[RuleConfig, ...], options: dict[str, Any]) -> Self:
        if "rules" in options:
            raise ValueError(
                "rules: a preset has its own; for others use LoopGuardPolicy(rules=...)"
            )
        return cls.model_validate({**options, "rules": rules})

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy from a JSON file, as `to_file` or `loopguard calibrate` writes it.

        Raises:
            OSError: If the file can't be read.
            PolicyFileError: If it holds no policy; the message names the fields that are wrong.
        """
        try:
            return cls.model_validate(json.loads(Path(path).read_text(encoding="utf-8-sig")))
        except ValidationError as error:
            raise PolicyFileError(f"{path}: not a policy: {in_words(error, cls)}") from error
        except (ValueError, RecursionError) as error:
            raise PolicyFileError(f"{path}: not JSON: {error}") from error

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a JSON file that `from_file` reads; an existing file is replaced.

        Raises:
            OSError: If the file can't be written.
        """
        Path(path).write_text(policy_text(self), encoding="utf-8")


def policy_text(policy: Policy) -> str:
    """Write a policy as the text of its file."""
    return json.dumps(policy.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def named_policy(name: str) -> LoopGuardPolicy:
    """Look up the policy of a command line: `default`, a preset's name, or a file.

    Raises:
        ValueError: If it is none of them; the message lists the names.
        OSError: If the file can't be read.
    """
    plain = _plain(name)
    if plain == _DEFAULT:
        return LoopGuardPolicy()
    if plain in PRESETS:
        return LoopGuardPolicy.preset(plain)
    # An empty name would be this directory as a path.
    if not plain or not Path(name).exists():
        names = ", ".join((_DEFAULT, *PRESETS))
        shown = name if plain else repr(name)
        raise ValueError(f"{shown}: neither a file nor a policy's name; the names are {names}")
    return LoopGuardPolicy.from_file(name)


def files_of(name: str) -> list[str]:
    """List the file that `named_policy` reads; it reads none for a policy's name."""
    return [] if _plain(name) in {_DEFAULT, *PRESETS} else [name]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
