"""Which rules does a guard run, and by which numbers?

A policy is data: validated once, frozen, loaded from and written to JSON. It decides nothing
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from langchain_loopguard.core.invalid import fields_of, in_words
from langchain_loopguard.core.presets import PRESETS, preset
from langchain_loopguard.core.rules import (
    AnyRule,
    NothingNew,
    RepeatedBatch,
    RuleConfig,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.core.rules.foreign import foreign_rule
from langchain_loopguard.core.stagnation import Stagnation
from langchain_loopguard.core.tools import ToolTraits, traits_of_name

if TYPE_CHECKING:
    import os


class LoopGuardPolicy(BaseModel):
    """What counts as a loop, and how often a refused loop may come again.

    Without arguments it is the measured default: warns early, asks late, and asked about no
    good run of those it was measured on. Each rule's file has the measurement behind its
    numbers.

    Raises:
        pydantic.ValidationError: At construction, naming the field and the allowed values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[AnyRule, ...] = (
        SameAnswer(),
        NothingNew(),
        UnbrokenCall(),
        SameError(),
        SameNumbers(),
    )
    """The rules to run; each kind at most once. An empty tuple finds nothing and counts
    nothing."""

    max_refusals: int = Field(default=3, ge=0, strict=True)
    """How often a batch of one loop is refused before the run ends (`Action.STOP`), when nobody
    is asked. 0 ends the run at the first detection. No measurement stands behind it: a report
    tells of three hours of refused calls, so there must be an end."""

    probation: bool = Field(default=True, strict=True)
    """Whether a flagged loop stays flagged over a user turn: the first call of it runs, its
    first repeat with the same answer asks at once."""

    stagnation: Stagnation | None = Stagnation()
    """How often the same prose may come; `None` does not look at prose.

    An adapter reads the prose that stands in a history with tool calls, and warns with the next
    batch. Where an agent never calls a tool nothing is read: call `LoopGuard.prose` there."""

    failures_in_text: bool | None = Field(default=None, strict=True)
    """Whether an adapter takes an answer for failed that opens like an error, such as `Error: not
    found`. LangChain gives each tool that returns the status `success`, and many return their
    errors as text. To the core's `record_results` the status alone counts. `None` is yes, but no
    for a policy of nothing but other systems' rules.

    Measured: told without statuses, 34 of 486 invented conversations and reports go wrong that go
    right with them, all of them loops of errors; this puts 25 of those right again and none wrong.
    Where all statuses are told it makes no difference."""

    poll_tools: ToolNames = ()
    """Names of tools that are meant to be called again until their answer changes."""

    read_only_tools: ToolNames = ()
    """Names of tools that change nothing, where the name does not say so."""

    changing_tools: ToolNames = ()
    """Names of tools that change something, where the name says otherwise."""

    shell_tools: ToolNames = ()
    """Names of tools that run what they are given, where the name does not say so."""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        unknown = data.keys() - cls.model_fields if isinstance(data, Mapping) else ()
        if unknown:
            shown = ", ".join(sorted(map(str, unknown)))
            raise ValueError(f"{shown}: no such field; the fields are {fields_of(cls)}")
        return data

    @model_validator(mode="after")
    def _each_rule_once(self) -> LoopGuardPolicy:
        kinds = [rule.rule for rule in self.rules]
        doubled = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if doubled:
            msg = f"rules: each kind may be listed once, but these are listed again: {doubled}"
            raise ValueError(msg)
        both = sorted({*self.read_only_tools} & {*self.changing_tools, *self.shell_tools})
        if both:
            msg = f"read_only_tools: {both} are listed as changing_tools or shell_tools too"
            raise ValueError(msg)
        return self

    @property
    def reads_failures(self) -> bool:
        """Whether an answer is failed that opens like an error; see `failures_in_text`."""
        if self.failures_in_text is not None:
            return self.failures_in_text
        return any(rule.needs_progress for rule in self.rules)

    def traits_of(self, name: str, declared: ToolTraits | None = None) -> ToolTraits:
        """Say what kind of tool this is: by the lists, else as declared, else by its name."""
        traits = declared or traits_of_name(name)
        if name in self.read_only_tools:
            traits = traits._replace(read_only=True, shell=False)
        if name in self.changing_tools:
            traits = traits._replace(read_only=False)
        if name in self.shell_tools:
            traits = ToolTraits(False, True, *traits[2:])  # noqa: FBT003 - read-only, shell
        if name in self.poll_tools:
            traits = traits._replace(poller=True)
        return traits

    def tune(self, **changes: Mapping[str, Any] | None) -> LoopGuardPolicy:
        """Copy the policy with other numbers for single rules.

        Args:
            changes: For a rule's name the numbers to change, or `None` to switch the rule off:
                `LoopGuardPolicy().tune(same_answer={"ask": 7}, same_numbers=None)`.

        Raises:
            ValueError: If the policy has no such rule, or a number is not allowed; the message
                names the field and what is.
        """
        known = [rule.rule for rule in self.rules]
        unknown = sorted(changes.keys() - set(known))
        if unknown:
            msg = f"rules: the policy has no {unknown}; its rules are {known}"
            raise ValueError(msg)
        rules = []
        for rule in self.rules:
            change: Any = changes.get(rule.rule, {})
            if change is None:
                continue
            if not isinstance(change, Mapping):
                raise ValueError(  # noqa: TRY004 - one type for everything that is wrong
                    f"{rule.rule}: must be None or the numbers to change, as in"
                    f' {{"ask": 7}}, not {change!r}'
                )
            rules.append({**rule.model_dump(), **change})
        data = {**self.model_dump(), "rules": rules}
        try:
            return type(self).model_validate(data)
        except ValidationError as error:
            raise ValueError(in_words(error, data)) from error

    @classmethod
    def _alone(cls, rules: tuple[RuleConfig, ...], options: dict[str, Any]) -> LoopGuardPolicy:
        """Make a policy of these rules and nothing else that finds loops."""
        if "rules" in options:
            raise ValueError(
                "rules: a preset has its own; for others use LoopGuardPolicy(rules=...)"
            )
        return cls.model_validate(
            {"probation": False, "stagnation": None, **options, "rules": rules}
        )

    @classmethod
    def seed(cls, **options: Any) -> LoopGuardPolicy:
        """Give exactly the seed's detector: asks the moment it finds a loop, never warns.

        Args:
            options: The policy's other fields.
        """
        return cls._alone((RepeatedBatch(),), options)

    @classmethod
    def signals(cls, **options: Any) -> LoopGuardPolicy:
        """Give opencode's signals A, B and C: equal answers, nothing new, the same error.

        Args:
            options: The policy's other fields.
        """
        return cls.preset("signals", **options)

    @classmethod
    def hermes(cls, *, hard_stop: bool = False, **options: Any) -> LoopGuardPolicy:
        """Give the three detectors of hermes' published guard, which warns first.

        Args:
            hard_stop: Whether calls are held back and runs ended too.
            options: The policy's other fields.
        """
        rule = foreign_rule("hermes").model_validate({"hard_stop_enabled": hard_stop})
        return cls._alone((rule,), options)

    @classmethod
    def preset(cls, name: str, **options: Any) -> LoopGuardPolicy:
        """Give the rules of another system, by the name of `preset_names`.

        Args:
            name: The system's name; `-` and `_` make no difference.
            options: The policy's other fields.

        Raises:
            ValueError: If there is no preset of that name; the message lists those there are.
        """
        return cls._alone(preset(name).rules, options)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> LoopGuardPolicy:
        """Read a policy from a JSON file, as `to_file` or `loopguard calibrate` writes it.

        Raises:
            OSError: If the file can't be read.
            PolicyFileError: If it holds no policy; the message names the fields that are wrong.
        """
        # The reading is elsewhere: nothing in the core does I/O.
        from langchain_loopguard.policy_file import read_policy  # noqa: PLC0415

        return read_policy(path)

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a JSON file that `from_file` reads.

        Raises:
            OSError: If the file can't be written.
        """
        from langchain_loopguard.policy_file import write_policy  # noqa: PLC0415

        write_policy(self, path)

    @classmethod
    def preset_names(cls) -> tuple[str, ...]:
        """Give the names that `preset` knows."""
        return tuple(PRESETS)
