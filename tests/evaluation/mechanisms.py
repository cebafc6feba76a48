"""Which parts has the default policy, and how is each switched off alone?

By the policy where it can be said there, else by changing one function or constant of the core
for as long as a `with` lasts. A name that is gone from the core raises, so that no row measures
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from langchain_loopguard.core import calls, clock, evidence, kinds, results, step
from langchain_loopguard.core.rules import cycle, repeat, stall
from langchain_loopguard.policy import LoopGuardPolicy

_MISSING = object()
_NEVER = 10**9
_NOTHING = re.compile(rb"(?!)")
_NONE = ((evidence.Progress.NONE,) * 3,) * 2
_NO_TEXT = re.compile("(?!)")


class Patch(NamedTuple):
    """A name of the core with what to put in its place."""

    owner: Any
    name: str
    make: Callable[[Any], Any]
    """Is given what stands there."""
    fresh: Callable[[], Any] | None = None
    """Makes an object that has the name, where the class does not."""

    def found(self) -> Any:
        """Find what stands there.

        Raises:
            AttributeError: If the core has no such name any more.
        """
        if self.fresh is not None:
            getattr(self.fresh(), self.name)
            return vars(self.owner).get(self.name, _MISSING)
        return vars(self.owner)[self.name] if self.name in vars(self.owner) else self._gone()

    def _gone(self) -> Any:
        raise AttributeError(f"{self.owner.__name__} has no {self.name}")


class Mechanism(NamedTuple):
    """One part of the default policy."""

    name: str
    tuned: dict[str, Any]
    """What to tune: a rule's name -> its numbers, or `None`."""
    options: dict[str, Any]
    """Fields of the policy."""
    patches: tuple[Patch, ...]

    @contextmanager
    def switched_off(self) -> Iterator[LoopGuardPolicy]:
        """Give the default policy without this part."""
        before = [(one, one.found()) for one in self.patches]
        for one, value in before:
            setattr(one.owner, one.name, one.make(value))
        kinds.kind_of_name.cache_clear()
        try:
            yield LoopGuardPolicy(**self.options).tune(**self.tuned)
        finally:
            for one, value in before:
                if value is _MISSING:
                    delattr(one.owner, one.name)
                else:
                    setattr(one.owner, one.name, value)
            kinds.kind_of_name.cache_clear()


def _tuned(name: str, **rules: Any) -> Mechanism:
    return Mechanism(name, rules, {}, ())


def _patched(name: str, *patches: Patch) -> Mechanism:
    return Mechanism(name, {}, {}, patches)


def _without(owner: Any, *names: str) -> tuple[Patch, ...]:
    """Put a pattern that finds nothing in the place of patterns."""

    def nothing(pattern: Any) -> Any:
        return _NOTHING if isinstance(pattern.pattern, bytes) else _NO_TEXT

    return tuple([Patch(owner, name, nothing) for name in names])


def _constant(owner: Any, name: str, value: Any) -> Patch:
    return Patch(owner, name, lambda _: value)


def _compared(*, digits: bool = False, long_digits: bool = False, lines: bool = True) -> Patch:
    """Compare results in another form: with digits in errors or in long texts, or without lines
    inside JSON."""

    def make(init: Any) -> Any:
        def changed(self: Any, call: Any, *rest: Any) -> None:
            init(self, call, *rest)
            text = results._without_own_words(self.text, call) if self.failed else self.text
            if lines and text[:1] in (b"{", b"["):
                text = text.replace(b"\\n", b"\n")
            breaks = text.count(b"\n")
            self.is_long = len(text) > results.LONG or breaks > results.MOST_LINES
            without = not long_digits if self.is_long else self.failed and not digits
            text = text if self.is_long else results.mask_clock(text)
            self.form = text.translate(None, results.DIGITS) if without else text

        return changed

    return Patch(results.Result, "__init__", make)


def _blind_to_words(rule: Any) -> Patch:
    """Let a rule see no new words."""

    def make(record: Any) -> Any:
        def changed(self: Any, step: Any, found: Any) -> Any:
            return record(self, step, found and found._replace(in_words=False))

        return changed

    return Patch(rule, "record", make)


def _always_false(owner: Any, name: str, fresh: Callable[[], Any]) -> Patch:
    """Put a property that stays false in the place of an attribute of objects."""
    return Patch(owner, name, lambda _: property(lambda _: False, lambda _, __: None), fresh)


def _unlisted(kind: str) -> Patch:
    def make(known: dict[str, str]) -> dict[str, str]:
        return {name: one for name, one in known.items() if one != kind}

    return Patch(kinds, "_OF_NAME", make)


def _forgive_all(self: Any, step: Any, found: Any) -> None:
    own = {call.identity for call in step.calls}
    self._counts = {key: count for key, count in self._counts.items() if key in own}


_RULES = ("repeat", "stall", "ceiling", "error", "in_vain", "cycle")

MECHANISMS: tuple[Mechanism, ...] = (
    *[_tuned(f"rule *{rule}*", **{rule: None}) for rule in _RULES],
    # What a call is known by.
    Mechanism("prose arguments left out", {}, {"ignored_arguments": ()}, ()),
    _patched(
        "white space and quotes in arguments",
        _constant(calls, "_SPACES_AND_QUOTES", b""),
        *_without(calls, "_ESCAPES"),
    ),
    _patched("invisible characters in arguments", *_without(calls, "_INVISIBLE")),
    # What tools are.
    _patched("list of names", Patch(kinds, "_OF_NAME", lambda _: {})),
    *[_patched(f"names: {kind}", _unlisted(kind)) for kind in kinds.NAMES],
    _patched(
        "names: `echo` reads",
        Patch(kinds, "_OF_NAME", lambda known: {k: v for k, v in known.items() if k != "echo"}),
    ),
    _patched("handoff by its prefix", _constant(kinds, "HANDOFF", "\0")),
    # In which form results are compared.
    _patched("clock masks, all", _constant(results, "mask_clock", lambda text: text)),
    _patched("masks: clocks and durations", *_without(clock, "_CLOCK")),
    _patched("masks: numbers behind a clock's key", *_without(clock, "_CLOCK_KEY")),
    _patched("masks: UUIDs", *_without(clock, "_UUID")),
    _patched("masks: long hexadecimal ids", *_without(clock, "_ID")),
    _patched("digits left out of errors", _compared(digits=True)),
    _patched(
        "the call's own words in errors",
        _constant(results, "_without_own_words", lambda text, _: text),
    ),
    _patched("long texts without digits", _compared(long_digits=True)),
    _patched("lines of a text inside JSON", _compared(lines=False)),
    _patched(
        "long texts as a whole",
        _constant(results, "LONG", _NEVER),
        _constant(results, "MOST_LINES", _NEVER),
    ),
    # Failures.
    _patched(
        "failures read from the text", _constant(results, "tells_of_failure", lambda _: False)
    ),
    _patched("failures: fields", *_without(results, "_FIELD")),
    _patched("failures: how a text opens", *_without(results, "_OPENS")),
    # The table.
    _patched(
        "frames of a tool",
        _constant(evidence.Evidence, "_size", lambda _self, _tool, hashes, _form: len(hashes)),
    ),
    _patched(
        "long results with other numbers",
        Patch(evidence, "TABLE", lambda rows: rows | {evidence.Said.MOVED: _NONE}),
    ),
    _patched("ranks in a list", *_without(evidence, "_RANK")),
    _patched("values of JSON on one line", _constant(evidence, "_JSON_MARKS", bytes(range(256)))),
    _patched("short results (none is)", _constant(evidence, "SHORT", -1)),
    # Waiting.
    _patched(
        "waiting, all of it",
        _constant(evidence, "says_wait", lambda _: False),
        Patch(step.Call, "waits", lambda _: property(lambda _: False)),
    ),
    _patched("waiting: results that say so", _constant(evidence, "says_wait", lambda _: False)),
    _patched(
        "waiting: long results that say so",
        Patch(evidence, "says_wait", lambda old: lambda result: not result.is_long and old(result)),
    ),
    _patched("waiting: errors that say so", *_without(results, "_ERROR_SAYS_WAIT")),
    _patched("waiting: `sleep` in arguments", *_without(step, "_SLEEPS")),
    _patched(
        "waiting goes on at the next look",
        _always_false(evidence.Evidence, "waits", evidence.Evidence),
    ),
    _tuned("patience of *repeat* (12 instead)", repeat={"patience": 12}),
    _tuned("patience of *error* (8 instead)", error={"patience": 8}),
    # Numbers and exceptions of rules.
    _tuned("*repeat*: news read slows (excuses nothing instead)", repeat={"ask_across": 5}),
    _patched(
        "*repeat*: news read slows (excuses all instead)",
        _constant(repeat._Repeat, "_forgive", _forgive_all),
    ),
    _patched(
        "*stall*: a free look after a change",
        _always_false(stall._Stall, "_free", lambda: stall._Stall(stall.Stall())),
    ),
    _tuned("*stall*: 12 after a change (8 instead)", stall={"ask_after_change": 8}),
    _tuned("*in vain*: calls made again ask", in_vain={"repeats": _NEVER}),
    _tuned("*in vain*: 15 where a tool reads", in_vain={"ask": _NEVER}),
    _tuned("*ceiling*: 10 for changes (20 instead)", ceiling={"changing": 20}),
    _tuned("*ceiling*: 20 for shells (50 instead)", ceiling={"shell": 50}),
    _tuned("*ceiling*: 50 in all", ceiling={"total": _NEVER}),
    _patched("*cycle*: new words excuse", _blind_to_words(cycle._Cycle)),
)

NUMBERS: tuple[Mechanism, ...] = (
    _tuned("*repeat* warn 3", repeat={"warn": 3}),
    _tuned("*repeat* ask 4", repeat={"ask": 4}),
    _tuned("*repeat* ask 6", repeat={"ask": 6}),
    _tuned("*stall* warn 4", stall={"warn": 4}),
    _tuned("*stall* ask 6", stall={"ask": 6}),
    _tuned("*stall* ask 10", stall={"ask": 10}),
    _tuned("*ceiling* shell 10", ceiling={"shell": 10}),
    _tuned("*ceiling* total 25", ceiling={"total": 25}),
    _tuned("*error* warn 4", error={"warn": 4}),
    _tuned("*error* ask 6", error={"ask": 6}),
    _tuned("*error* ask 12", error={"ask": 12}),
    _tuned("*in vain* ask again at 5", in_vain={"ask_again": 5}),
    _tuned("*in vain* ask again at 10", in_vain={"ask_again": 10}),
    _tuned("*in vain* after 3 repeats", in_vain={"repeats": 3}),
    _tuned("*in vain* ask 10 where a tool reads", in_vain={"ask": 10}),
    _tuned("*cycle* rounds 5", cycle={"rounds": 5}),
    _tuned("*cycle* rounds 8", cycle={"rounds": 8}),
    _patched("short: 1 line", _constant(evidence, "SHORT", 1)),
    _patched("short: 3 lines", _constant(evidence, "SHORT", 3)),
    _patched("long from 500 bytes", _constant(results, "LONG", 500)),
    _patched("long from 4,000 bytes", _constant(results, "LONG", 4000)),
    _patched("hashes remembered: 64", _constant(evidence, "_MEMORY", 64)),
    _patched("hashes remembered: 4,096", _constant(evidence, "_MEMORY", 4096)),
)
"""The default with one number that is another."""
