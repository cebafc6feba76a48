"""*error*: one error, whatever the arguments were and whichever tools gave it.

Errors are compared without numbers and without what the call itself said, so `No such file: a.py`
and `… b.py` are one, and so is LangGraph's answer to every tool name that a model makes up. A
success that says something new or does something clears. Not seen: errors that only prose tells
(see `Policy.is_failure`), several kinds of errors in turn (*stall* finds them, later).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_loopguard.core import state
from langchain_loopguard.core.evidence import Said
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig, Warn, kept_names

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Step

_FAILED = (Said.NEW_ERROR, Said.KNOWN_ERROR)
_ERRORS = 8
_TOOLS = 3
_ANY_TOOL = 3
"""So many tools with one error: it is none of a single tool, a person is asked before any next
call."""


class Error(RuleConfig):
    """The numbers of *error*."""

    reads_evidence: ClassVar[bool] = True
    rising: ClassVar = (("warn", "ask", "patience"),)

    rule: Literal["error"] = "error"

    warn: Warn = 5
    """The model is warned."""

    ask: Ask = 8
    """The loop is detected. Without the rule one labelled loop of 122 and one public report of 90
    are missed."""

    patience: Ask = 20
    """The same where the agent waits, or the error says that trying again later is right."""

    def build(self) -> OwnRule:
        """Make fresh counters."""
        return _Error(self)


class _Error(OwnRule):
    _config: Error
    name = "error"
    advice = (
        "The same error came several times. Read it, find its cause and do something else, or "
        "say what blocks you and finish."
    )
    fact = "{tools} failed {count} times with the same error, numbers and arguments aside"

    def clear(self) -> None:
        # Error -> how often, since when, at which count a person is asked, the tools.
        self._errors: dict[int, tuple[int, int, int, list[str]]] = {}

    def check(self, step: Step) -> Finding | None:
        if not self._errors:
            return None
        called = set(kept_names(step.tools))
        for form, (count, since, limit, tools) in self._errors.items():
            if count >= limit and (len(tools) >= _ANY_TOOL or not called.isdisjoint(tools)):
                return self.judge(count, None, limit, tools=tools, since=since, loop=form)
        return None

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        if evidence is None:
            return None
        if evidence.tells or evidence.changed_by:
            self.clear()
        strongest: Finding | None = None
        failed = {
            brought.form or 0: brought.call.name
            for brought in evidence.calls
            if brought.said in _FAILED
        }
        for form, tool in failed.items():
            limit = self._config.patience if evidence.waits else self._config.ask
            count, since, _, tools = self._errors.pop(form, (0, step.number, 0, []))
            tools = list(dict.fromkeys([*tools, *kept_names([tool])]))[:_TOOLS]
            self._errors[form] = (count + 1, since, limit, tools)
            found = self.judge(
                count + 1,
                None if evidence.waits else self._config.warn,
                limit,
                tools=tools,
                since=since,
                loop=form,
            )
            if found is not None and (strongest is None or found.action > strongest.action):
                strongest = found
        state.keep_latest(self._errors, _ERRORS)
        return strongest

    def to_state(self) -> Any:
        return [[form, *counted] for form, counted in self._errors.items()]

    def load_state(self, stored: Any) -> None:
        rows = state.each(
            stored,
            _ERRORS,
            state.count,
            state.count,
            state.count,
            state.count,
            lambda tools: [state.text(name) for name in state.entries(tools, _TOOLS)],
        )
        self._errors = {form: tuple(counted) for form, *counted in rows}
