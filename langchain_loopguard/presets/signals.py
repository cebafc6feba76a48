"""Systems that remember calls by key, however far apart: opencode's signals, #32089, AutoGPT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import xxhash

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import Steps
from langchain_loopguard.presets.frame import (
    ANY_TOOL,
    Count,
    Hit,
    Made,
    PresetConfig,
    PresetRule,
    hit_at,
    strongest,
)
from langchain_loopguard.presets.parts import Memory, Streak, fingerprint
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.results import Result

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_DIGITS = b"0123456789"
_EMPTY = (b"null", b"{}", b"[]", b'""')


class _SignalA(PresetRule["SignalA"]):
    def __init__(self, config: SignalA) -> None:
        self.seen = Memory(48, width=3)
        super().__init__(config, self.seen)

    def before(self, call: Made) -> Hit | None:
        count, since, _ = self.seen.get(call.key)
        climbed = self.config.climb(count) if count >= self.config.ask_at else None
        return hit_at(climbed, Kind.SAME_RESULT, count, since, f"0.{call.key}", call)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            return None
        count, since, _ = self.seen.add(call.key, call.number, fingerprint(result.digest))
        climbed = self.config.climb(count)
        return hit_at(climbed, Kind.SAME_RESULT, count, since, f"0.{call.key}", call)


class SignalA(PresetConfig):
    """opencode's signal A: the same call gave the same result again, however far apart."""

    title = "opencode signal A"
    counts = _SignalA
    turn_clears = False
    rising = (("note_at", "ask_at"),)
    rule: Literal["signal_a"] = "signal_a"
    note_at: Count = 3
    ask_at: Count = 6


class _SignalB(PresetRule["SignalB"]):
    def __init__(self, config: SignalB) -> None:
        self.streak = Streak()
        self.lines, self.results = (Memory(limit, width=0, size=4) for limit in (600, 32))
        super().__init__(config, self.streak, self.lines, self.results)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            return None
        if self._shows_news(result.text):
            self.streak.clear()
            return None
        count = self.streak.next(0, call.number)
        climbed, since = self.config.climb(count), self.streak.since
        return hit_at(climbed, Kind.NOTHING_NEW, count, since, "0.0", call, ANY_TOOL)

    def _shows_news(self, text: bytes) -> bool:
        known = self.results.add(xxhash.xxh32_intdigest(text), 0).times > 1
        lines = filter(_LETTER_OR_DIGIT.search, text.decode("utf-8", "replace").splitlines())
        hashes = [xxhash.xxh32_intdigest(line.encode("utf-8")) for line in lines]
        news = [line for line in hashes if self.lines.add(line, 0).times == 1]
        return bool(news) and not known


class SignalB(PresetConfig):
    """opencode's signal B: call after call shows no line that was not seen before."""

    title = "opencode signal B"
    counts = _SignalB
    rising = (("notes_at", "ask_at", "stop_at"),)
    rule: Literal["signal_b"] = "signal_b"
    notes_at: Steps = (3, 5)
    ask_at: Count = 8
    stop_at: Count = 12


class _SignalC(PresetRule["SignalC"]):
    def __init__(self, config: SignalC) -> None:
        self.seen = Memory(24, width=3)
        super().__init__(config, self.seen)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            return None
        if not result.failed:
            self.seen.drop_tag(call.tool)
            return None
        key = fingerprint(call.tool, result.text.translate(None, _DIGITS))
        count, since, _ = self.seen.add(key, call.number, call.tool)
        climbed, loop = self.config.climb(count), f"0.{key}"
        return hit_at(climbed, Kind.SAME_ERROR, count, since, loop, call, call.tool)


class SignalC(PresetConfig):
    """opencode's signal C: one tool fails with the same error, whatever the arguments."""

    title = "opencode signal C"
    counts = _SignalC
    turn_clears = False
    rising = (("note_at", "ask_at"),)
    rule: Literal["signal_c"] = "signal_c"
    note_at: Count = 4
    ask_at: Count = 6


class _Pr32089(PresetRule["Pr32089"]):
    def __init__(self, config: Pr32089) -> None:
        self.seen = Memory(224)
        super().__init__(config, self.seen)

    def before(self, call: Made) -> Hit | None:
        count, since, _ = self.seen.add(call.key, call.number)
        climbed, loop = self.config.climb(count), f"0.{call.key}"
        return hit_at(climbed, Kind.SAME_CALL_AGAIN, count, since, loop, call)


class Pr32089(PresetConfig):
    """opencode #32089: the same call for the third time in the session."""

    title = "opencode #32089"
    counts = _Pr32089
    turn_clears = False
    rule: Literal["pr_32089"] = "pr_32089"
    ask_at: Count = 3


class _AutoGpt(PresetRule["AutoGpt"]):
    def __init__(self, config: AutoGpt) -> None:
        self.failed, self.empty = Memory(96, width=3), Streak()
        super().__init__(config, self.failed, self.empty)

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        return strongest((self._empty(calls), super().judge(calls)))

    def before(self, call: Made) -> Hit | None:
        (count, since, _), limit = self.failed.get(call.key), self.config.failures
        climbed = (Action.ASK, limit) if count >= limit else None
        return hit_at(climbed, Kind.SAME_FAILURE, count, since, f"0.{call.key}", call)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is not None and result.failed:
            self.failed.add(call.key, call.number, call.tool)
        elif result is not None:
            self.failed.drop_tag(call.tool)
        return None

    def _empty(self, calls: Sequence[Made]) -> Hit | None:
        empty = tuple(call.name for call in calls if call.canonical in _EMPTY)
        if not empty:
            self.empty.clear()
            return None
        count, limit = self.empty.next(0, calls[0].number), self.config.empty_messages
        if count < limit:
            return None
        return Hit(Action.STOP, Kind.NO_ARGUMENTS, count, limit, self.empty.since, "1.0", empty)


class AutoGpt(PresetConfig):
    """AutoGPT's platform: a call that keeps failing, and messages without arguments."""

    title = "AutoGPT"
    counts = _AutoGpt
    turn_clears = False
    rule: Literal["autogpt"] = "autogpt"
    failures: Count = 3
    """Failures of one call; the next one is refused."""
    empty_messages: Count = 5
    """Messages in a row that hold a call without arguments; the run ends."""
