"""Which rules a guard runs, and by which numbers. A policy is data and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from langchain_loopguard.core.invalid import fields_of, in_words
from langchain_loopguard.core.kinds import ToolKind, kind_of_name
from langchain_loopguard.core.rules import (
    OWN_RULES,
    Ceiling,
    Cycle,
    Error,
    InVain,
    Repeat,
    RuleConfig,
    Stall,
)
from langchain_loopguard.core.rules.base import ToolNames

IsFailure: TypeAlias = Callable[[str, Any], bool | None]

Limit: TypeAlias = Annotated[int, Field(ge=1)]

IGNORED_ARGUMENTS: tuple[str, ...] = tuple(
    "description explain explanation intent justification note_to_self purpose rationale reason "
    "reasoning reflection security_risk summary task_progress thinking thought thoughts why".split()
)
"""Arguments that models write for people; see `Policy.ignored_arguments`."""

_LISTS = {
    "poll_tools": "poller",
    "read_only_tools": "read_only",
    "changing_tools": "changing",
    "shell_tools": "shell",
}
"""Field of the policy -> the kind that it lists."""


class Policy(BaseModel):
    """What counts as a loop, and how often a refused loop may come again.

    Without arguments it is the measured default: it warns early, asks late, and
    interrupted no good run of those it was measured on.

    Raises:
        pydantic.ValidationError: At construction, naming the field and the allowed values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    rules: tuple[SerializeAsAny[RuleConfig], ...] = (
        Repeat(),
        Stall(),
        Ceiling(),
        Error(),
        InVain(),
        Cycle(),
    )
    """The rules to run; each kind at most once. An empty tuple finds nothing and counts
    nothing."""

    max_refusals: int = Field(default=3, ge=0, strict=True)
    """How often a step of one loop is refused before the run ends (`Action.STOP`), when nobody is
    asked. 0 ends the run at the first detection. No measurement stands behind it: a report tells
    of three hours of refused calls, so there must be an end."""

    ignored_arguments: ToolNames = IGNORED_ARGUMENTS
    """Arguments that make no other call of a call, while another argument remains: models write
    them for people, in new words each time. An empty list compares all arguments."""

    poll_tools: ToolNames = ()
    """Tools that are meant to be called again until their result changes. A person is
    asked at the patience of *repeat* (20 equal results) and nowhere else; `for_tool` sets another
    number."""

    read_only_tools: ToolNames = ()
    """Tools that change nothing."""

    changing_tools: ToolNames = ()
    """Tools of which each success is a change."""

    shell_tools: ToolNames = ()
    """Tools that run what they are given."""

    tool_limits: Mapping[str, Limit] = {}
    """Tool -> at how many equal calls in one turn a person is asked, before the last of them
    runs; see `for_tool`."""

    is_failure: IsFailure | None = Field(default=None, exclude=True, repr=False)
    """Tells of a tool's name and a result's content whether the call failed: `True`, `False`, or
    `None` to leave it to the text. Not asked where the status says `error`. For failures that only
    prose tells. Where it raises or returns something else, the text tells. Not written to a policy
    file."""

    def __hash__(self) -> int:
        """Hash by the fields, so that equal policies are one key."""
        return hash(self.model_dump_json())

    @classmethod
    def rule_types(cls) -> dict[str, type[RuleConfig]]:
        """Return the rules that a policy may list: name -> the model of its numbers."""
        return {rule.model_fields["rule"].default: rule for rule in OWN_RULES}

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        unknown = data.keys() - cls.model_fields if isinstance(data, Mapping) else ()
        if unknown:
            shown = ", ".join(sorted(map(str, unknown)))
            raise ValueError(f"{shown}: no such field; the fields are {fields_of(cls)}")
        return data

    @field_validator("rules", mode="before")
    @classmethod
    def _read_rules(cls, rules: Any) -> Any:
        if not isinstance(rules, (list, tuple)):
            return rules
        return tuple(cls._read_rule(rule) for rule in rules)

    @classmethod
    def _read_rule(cls, rule: Any) -> Any:
        if isinstance(rule, RuleConfig):
            return rule
        name = rule.get("rule") if isinstance(rule, Mapping) else None
        types = cls.rule_types()
        if not isinstance(name, str):
            raise ValueError('each must name its rule, as in {"rule": "repeat"}')  # noqa: TRY004
        if name not in types:
            raise ValueError(f"there is no rule {name!r}; there are {', '.join(types)}")
        try:
            return types[name].model_validate(rule)
        except ValidationError as error:
            raise ValueError(in_words(error, types[name], f"{name}.")) from error

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        kinds = [rule.rule for rule in self.rules]
        doubled = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if doubled:
            raise ValueError(
                f"rules: each kind may be listed once, but these are listed again: {doubled}"
            )
        both = sorted({*self.read_only_tools} & {*self.changing_tools, *self.shell_tools})
        if both:
            raise ValueError(
                f"read_only_tools: {both} are listed as changing_tools or shell_tools too"
            )
        return self

    @property
    def reads_evidence(self) -> bool:
        """Whether a rule reads what a step brought."""
        return any(rule.reads_evidence for rule in self.rules)

    def kind_of(self, name: str, declared: ToolKind | None = None) -> ToolKind:
        """Say what kind of tool this is: by the lists, else as declared, else by its name."""
        kind = declared or kind_of_name(name)
        listed: dict[str, Any] = {
            kind: True for field, kind in _LISTS.items() if name in getattr(self, field)
        }
        if listed.keys() & {"read_only", "changing", "shell"}:
            kind = kind._replace(read_only=False, changing=False, shell=False)
        limit = self.tool_limits.get(name, kind.limit)
        patience = max((getattr(rule, "patience", 0) for rule in self.rules), default=0)
        if limit is not None and limit > patience > 0:
            listed["poller"] = True
        return kind._replace(**listed, limit=limit)

    def for_tool(self, name: str, *, repeat: int) -> Self:
        """Copy the policy with a limit of its own for one tool.

        Args:
            name: The tool's name.
            repeat: At how many equal calls in one turn a person is asked, before the last of them
                runs and whatever the others answered: `for_tool("refund", repeat=2)` asks before
                the second equal refund. A number above the patience of *repeat* makes the tool a
                poller: `for_tool("get_job", repeat=300)`.

        Raises:
            ValueError: If the number is not a whole number from 1.
        """
        return self._copy(tool_limits={**self.tool_limits, name: repeat})

    def tune(self, **changes: Mapping[str, Any] | None) -> Self:
        """Copy the policy with other numbers for single rules.

        Args:
            changes: For a rule's name the numbers to change, or `None` to switch the rule off:
                `LoopGuardPolicy().tune(repeat={"ask": 7}, cycle=None)`.

        Raises:
            ValueError: If the policy has no such rule, or a number is not allowed; the message
                names the field and what is.
        """
        known = [rule.rule for rule in self.rules]
        unknown = sorted(changes.keys() - set(known))
        if unknown:
            raise ValueError(f"rules: the policy has no {unknown}; its rules are {known}")
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
        return self._copy(rules=rules)

    def _copy(self, **changes: Any) -> Self:
        data = {name: getattr(self, name) for name in type(self).model_fields} | changes
        try:
            return type(self).model_validate(data)
        except ValidationError as error:
            raise ValueError(in_words(error, type(self))) from error
