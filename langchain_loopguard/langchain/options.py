"""Which options do the adapters have in common, and what is said when one is wrong?

`Options` is built once by each adapter, which hands on its own keyword arguments. Everything that
is wrong is a `ValueError` that names the option, what it was and what it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from langchain_loopguard.langchain.wording import Wording, wording_of
from langchain_loopguard.policy import LoopGuardPolicy

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_loopguard.langchain.outcome import Detected

Mode = Literal["interrupt", "refuse", "raise", "warn", "wrap_up", "observe"]
"""What happens when a loop is detected: a person is asked, the calls are refused, the run ends in
an error, the model is warned and nothing is stopped, the model answers again without tools, or
nothing at all happens and it is only recorded."""

MODES: tuple[str, ...] = get_args(Mode)
"""The modes by name."""

OnDetected: TypeAlias = "Mode | Callable[[Detected], Any]"
"""A mode, or a callable that gives one, or an answer as a person would (see `outcome.resolve`)."""

ShowContent = Literal["full", "masked", "none"]
"""How much of arguments and results a question shows."""

IsUserMessage: TypeAlias = "Callable[[BaseMessage], bool] | Iterable[str] | None"
"""Which human messages a user wrote: a callable, or the texts that no user writes."""

Scope = Literal["thread", "handler"]
"""Over what a callback handler counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The checked options that every adapter has.

    Attributes:
        policy: What counts as a loop; `None` is the default policy.
        on_detected: What happens to a step that is one.
        show_content: How much of arguments and results a question shows: all of it, texts with
            what looks like a secret masked, or nothing but lengths.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        is_user_message: Which human messages a user wrote: a callable, or texts that no user
            writes, a harness's `"continue"` for one. A generated message never is one.
        wording: The sentences to use; a mapping may name some of `Wording`'s fields.
        fail_open: Whether a fault of the guard is logged and the agent goes on unguarded.
        allowed: The modes that the adapter knows.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
    """

    policy: LoopGuardPolicy = None  # type: ignore[assignment]
    on_detected: OnDetected = "interrupt"
    show_content: ShowContent = "full"
    agent_inbox: bool = False
    is_user_message: IsUserMessage = None
    wording: Wording = None  # type: ignore[assignment]
    fail_open: bool = True
    allowed: tuple[str, ...] = MODES
    not_user_texts: frozenset[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        """Check every option."""
        if self.policy is not None and not isinstance(self.policy, LoopGuardPolicy):
            raise ValueError(f"policy: must be a LoopGuardPolicy or None, not {self.policy!r}")
        self._set("policy", self.policy or LoopGuardPolicy())
        if not callable(self.on_detected):
            check_choice("on_detected", self.on_detected, self.allowed, "or a callable")
        check_choice("show_content", self.show_content, get_args(ShowContent))
        check_flag("agent_inbox", self.agent_inbox)
        check_flag("fail_open", self.fail_open)
        self._set("wording", wording_of(self.wording))
        who = self.is_user_message
        if who is not None and not callable(who):
            texts = list(who) if isinstance(who, Iterable) and not isinstance(who, str) else None
            if texts is None or not all(type(text) is str for text in texts):
                raise ValueError(
                    f"is_user_message: must be a callable or a list of texts, not {who!r}"
                )
            self._set("not_user_texts", frozenset(_plain(text) for text in texts))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def wrote_by_user(self, message: BaseMessage) -> bool:
        """Tell whether the options let a human message pass for one that a user wrote."""
        if callable(self.is_user_message):
            return bool(self.is_user_message(message))
        return not self.not_user_texts or _plain(str(message.text)) not in self.not_user_texts


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .!").lower()


def check_choice(option: str, value: Any, choices: Iterable[Any], further: str = "") -> None:
    """Check that an option is one of the choices."""
    choices = tuple(choices)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        shown = " ".join((", ".join(map(repr, choices)), further)).strip()
        raise ValueError(f"{option}: must be one of {shown}, not {value!r}")


def check_name(option: str, value: Any) -> None:
    """Check that an option is a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{option}: must be a name that is not empty, not {value!r}")


def check_count(option: str, value: Any) -> None:
    """Check that an option is a number of things, at least one."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{option}: must be 1 or more, not {value!r}")


def check_flag(option: str, value: Any) -> None:
    """Check that an option is a bool: any text would count as true, `"no"` too."""
    if type(value) is not bool:
        raise ValueError(f"{option}: must be True or False, not {value!r}")


def check_tools(option: str, value: Any) -> None:
    """Check that an option is a list of tools; one tool can be iterated over too, and is none."""
    one = isinstance(value, str | bytes | Mapping) or callable(getattr(value, "invoke", None))
    if one or not isinstance(value, Iterable):
        raise ValueError(f"{option}: must be a list of tools, not {value!r}")
