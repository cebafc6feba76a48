"""What do loops look like, and what looks like one and is none?

Shapes are built from ideas, with made-up words, and told in the transcript form. Each says what
a demanding user expects: a loop is asked about within so many batches after its first repeat,
good work never. `python -m tests.rules.shapes` prints what the default guard makes of them.
"""

# ruff: noqa: B008 - a step's words are fixed once, when its lambda is made.
# ruff: noqa: S608 - the arguments of a made-up tool.
# ruff: noqa: T201 - prints its findings when it is run.

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from dataclasses import dataclass
from itertools import count

from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.conversations import read_through

SEEDS = (1, 2)

LAPS = 70
"""Batches that a loop goes on for after its first repeat."""


class Talk:
    """Writes a conversation in the transcript form."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.events = [{"type": "human"}]
        self.batches = 0
        self.repeat = None
        self.tick = 1_700_000_000 + seed * 1000
        self._ids = count(1)
        self._taken = set()

    def word(self):
        """A word that was not used before."""
        while True:
            word = "".join(
                self.random.choice("bdfgklmnprstvz") + self.random.choice("aeiou")
                for _ in range(self.random.randint(2, 4))
            )
            if word not in self._taken:
                self._taken.add(word)
                return word

    def words(self, n):
        return " ".join(self.word() for _ in range(n))

    def lines(self, n):
        return "\n".join(self.words(3) for _ in range(n))

    def human(self):
        self.events.append({"type": "human"})

    def first_repeat(self):
        """The next batch is the loop's first repeat."""
        if self.repeat is None:
            self.repeat = self.batches + 1

    def batch(self, *calls):
        """One batch of `(name, args, content)` or `(name, args, content, "error")`; a content of
        `None` is an answer that is missing."""
        made, results = [], []
        for name, args, content, *status in calls:
            call_id = f"c{next(self._ids)}"
            made.append({"id": call_id, "name": name, "args": args})
            if content is not None:
                results.append(
                    {
                        "id": call_id,
                        "content": content,
                        "status": status[0] if status else "success",
                    }
                )
        self.batches += 1
        self.events.append({"type": "batch", "calls": made, "results": results})

    def call(self, name, args, content, status="success"):
        self.batch((name, args, content, status))

    def fails(self, name, args, content):
        self.call(name, args, content, "error")

    def goes_on(self):
        """Whether a loop goes on."""
        return self.batches < self.repeat + LAPS

    def path(self, ending="py"):
        return f"src/{self.word()}/{self.word()}.{ending}"

    # What a service makes up for each answer.
    def hex(self, digits=12):
        return "".join(self.random.choice("0123456789abcdef") for _ in range(digits))

    def token(self, letters=12):
        known = string.ascii_letters + string.digits
        return "".join(self.random.choice(known) for _ in range(letters))

    def image(self, text=None, key="source"):
        data = base64.b64encode((text or self.hex(400)).encode()).decode()
        if key == "image_url":
            return [{"type": key, key: {"url": f"data:image/png;base64,{data}"}}]
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return [{"type": "image", key: source}]

    # What a clock writes, new each time.
    def clock(self, kind):
        self.tick += self.random.randint(1, 90)
        r = self.random
        return {
            "time": f"{self.tick // 3600 % 24:02}:{self.tick // 60 % 60:02}:{self.tick % 60:02}",
            "iso": f"2025-03-{r.randint(10, 28)}T{r.randint(10, 23)}:{r.randint(10, 59)}:"
            f"{r.randint(10, 59)}.{r.randint(100, 999)}Z",
            "epoch": str(self.tick),
            "took": f"took {r.random():.3f}s",
            "uuid": str(uuid.UUID(int=r.getrandbits(128))),
            "address": f"<Session object at 0x7f{r.getrandbits(36):09x}>",
            "idle": f"idle_for_seconds: {self.tick % 100_000}",
            "ms": f'{{"duration_ms": {r.randint(10, 9999)}}}',
        }[kind]


CLOCKS = ("time", "iso", "epoch", "took", "uuid", "address", "idle", "ms")


@dataclass(frozen=True)
class Shape:
    """A conversation and what is expected of a guard."""

    name: str
    build: object
    loop: bool
    within: int = 0
    """Batches from a loop's first repeat to the ask, at most."""
    poll_tools: tuple = ()
    ends: bool = True
    """Whether the run must end when the model takes no refusal for an answer."""
    family: str = ""
    """The section of this file that it stands in."""

    def talk(self, seed):
        talk = Talk(seed)
        self.build(talk)
        assert (talk.repeat is not None) is self.loop
        return talk

    def policy(self, policy=None):
        """The policy with the pollers that the shape declares."""
        return (policy or LoopGuardPolicy()).model_copy(update={"poll_tools": self.poll_tools})


SHAPES: dict[str, Shape] = {}
_family = ""


def _loop(name, *, within, poll_tools=(), ends=True):
    def add(build):
        assert name not in SHAPES
        SHAPES[name] = Shape(name, build, True, within, poll_tools, ends, _family)
        return build

    return add


def _benign(name, *, poll_tools=()):
    def add(build):
        assert name not in SHAPES
        SHAPES[name] = Shape(name, build, False, poll_tools=poll_tools, family=_family)
        return build

    return add


def _rotate(talk, steps, between=None):
    """Run steps round and round; each step gives the calls of a batch."""
    for lap in count():
        for place, step in enumerate(steps):
            if lap == 1 and place == 0:
                talk.first_repeat()
            talk.batch(*step())
            if between is not None:
                talk.batch(*between())
        if lap and talk.batches > (talk.repeat or 0) + LAPS:
            return


def _fixed(*calls):
    return lambda: calls


# --- Loops: rotations ---------------------------------------------------------------------------

_family = "rotations"

READERS = ("read_file", "search", "list_dir", "get_user", "fetch", "view", "grep", "describe_table")
CHANGERS = (
    "set_flag",
    "update_ticket",
    "move_card",
    "frobnicate",
    "assign",
    "rename",
    "press",
    "put",
)


def _steps(talk, period, kind, lines):
    """Steps of one rotation, each with its own constant answer."""
    steps = []
    for place in range(period):
        answer = talk.lines(lines) if lines else ""
        args = {"v": talk.word()}
        name = {
            "read": READERS[place % len(READERS)],
            "change": CHANGERS[place % len(CHANGERS)],
            "one": "browse",
            "shell": "bash",
            "mixed": (READERS[place % 8], CHANGERS[place % 8], "bash")[place % 3],
        }[kind]
        steps.append(_fixed((name, args, answer)))
    return steps


for _period in (1, 2, 3, 4, 5, 6, 7, 8):
    for _kind in ("read", "change", "one", "shell", "mixed"):
        for _lines in (0, 1, 5):

            @_loop(f"rotation-{_period}-{_kind}-{_lines}-lines", within=10)
            def _(talk, period=_period, kind=_kind, lines=_lines):
                _rotate(talk, _steps(talk, period, kind, lines))


for _period in (12, 24, 40):
    for _lines in (1, 5, 20):

        @_loop(f"rotation-{_period}-long-{_lines}-lines", within=9)
        def _(talk, period=_period, lines=_lines):
            _rotate(talk, _steps(talk, period, "mixed", lines))


@_loop("rotation-6-of-100-line-answers", within=9)
def _(talk):
    _rotate(talk, _steps(talk, 6, "read", 100))


for _period in (2, 3, 5):
    for _helper, _args, _answer in (
        ("sleep", {"seconds": 5}, "Slept."),
        ("sleep", {"seconds": 5}, ""),
        ("think", {"thought": "hm"}, "Your thought has been logged.\nGo on."),
    ):

        @_loop(f"rotation-{_period}-with-constant-{_helper}-{len(_answer)}", within=18)
        def _(talk, period=_period, call=(_helper, _args, _answer)):
            _rotate(talk, _steps(talk, period, "read", 3), _fixed(call))

    @_loop(f"rotation-{_period}-with-new-thoughts", within=18)
    def _(talk, period=_period):
        think = lambda: [("think", {"thought": talk.words(6)}, "Your thought has been logged.")]  # noqa: E731
        _rotate(talk, _steps(talk, period, "read", 3), think)

    @_loop(f"rotation-{_period}-with-echoed-thoughts", within=18)
    def _(talk, period=_period):
        def think():
            thought = talk.words(6)
            return [("think", {"thought": thought}, f"Thought: {thought}")]

        _rotate(talk, _steps(talk, period, "read", 3), think)

    @_loop(f"rotation-{_period}-with-echoed-long-thoughts", within=18)
    def _(talk, period=_period):
        def think():
            thought = talk.lines(3)
            return [("think", {"thought": thought}, thought)]

        _rotate(talk, _steps(talk, period, "read", 3), think)

    @_loop(f"rotation-{_period}-with-new-to-do-lists", within=18)
    def _(talk, period=_period):
        def plan():
            todo = talk.words(4)
            return [("write_todos", {"todos": [todo]}, f"Updated todo list to [{todo}]")]

        _rotate(talk, _steps(talk, period, "read", 3), plan)


for _clock in CLOCKS:
    for _period in (1, 2, 3):
        # A reading call has the reading allowance of 15; a rotation has it for each of its calls.
        @_loop(f"rotation-{_period}-reading-with-{_clock}", within=15 * _period)
        def _(talk, period=_period, clock=_clock):
            steps = [
                lambda name=READERS[p], v=talk.word(), text=talk.lines(3): [
                    (name, {"v": v}, f"{text}\n{talk.clock(clock)}")
                ]
                for p in range(period)
            ]
            _rotate(talk, steps)

        @_loop(f"rotation-{_period}-changing-with-{_clock}", within=10)
        def _(talk, period=_period, clock=_clock):
            steps = [
                lambda name=CHANGERS[p], v=talk.word(), text=talk.lines(3): [
                    (name, {"v": v}, f"{text}\n{talk.clock(clock)}")
                ]
                for p in range(period)
            ]
            _rotate(talk, steps)

    @_loop(f"rotation-3-with-one-change-with-{_clock}", within=25)
    def _(talk, clock=_clock):
        steps = [
            lambda name=name, v=talk.word(), text=talk.lines(3): [
                (name, {"v": v}, f"{text}\n{talk.clock(clock)}")
            ]
            for name in ("read_file", "update_ticket", "search")
        ]
        _rotate(talk, steps)

    @_loop(f"shell-one-line-with-{_clock}", within=20)
    def _(talk, clock=_clock):
        word, command = talk.words(2), talk.word()
        _rotate(talk, [lambda: [("bash", {"command": command}, f"{word} {talk.clock(clock)}")]])

    @_loop(f"rotation-2-shell-with-{_clock}-in-json", within=12)
    def _(talk, clock=_clock):
        steps = [
            lambda v=talk.word(), state=talk.word(): [
                ("bash", {"command": v}, json.dumps({"state": state, "seen": talk.clock(clock)}))
            ]
            for _ in range(2)
        ]
        _rotate(talk, steps)

    @_loop(f"new-spellings-with-{_clock}", within=10)
    def _(talk, clock=_clock):
        text, base = talk.lines(4), talk.word()
        step = lambda: [  # noqa: E731
            ("bash", {"command": f"{base} --{talk.word()}"}, f"{text}\n{talk.clock(clock)}")
        ]
        _rotate(talk, [step])

    @_loop(f"errors-with-new-arguments-and-{_clock}", within=8)
    def _(talk, clock=_clock):
        text = talk.words(4)
        _rotate(
            talk,
            [lambda: [("edit", {"t": talk.words(3)}, f"{text} {talk.clock(clock)}", "error")]],
        )


@_loop("rotation-3-of-json-answers", within=9)
def _(talk):
    steps = [
        _fixed((name, {"id": talk.word()}, json.dumps({"a": talk.word(), "b": [1, 2]})))
        for name in ("get_order", "get_user", "get_product")
    ]
    _rotate(talk, steps)


@_loop("rotation-3-of-indented-json", within=9)
def _(talk):
    steps = [
        _fixed((name, {"id": talk.word()}, json.dumps({"a": talk.word(), "b": [1, 2]}, indent=1)))
        for name in ("get_order", "get_user", "get_product")
    ]
    _rotate(talk, steps)


@_loop("rotation-2-of-content-blocks", within=9)
def _(talk):
    steps = [
        _fixed((name, {"id": talk.word()}, [{"type": "text", "text": talk.lines(2)}]))
        for name in ("get_order", "get_user")
    ]
    _rotate(talk, steps)


# --- Loops: spellings and orders ----------------------------------------------------------------

_family = "spellings and orders"


@_loop("new-spellings-of-one-command", within=9)
def _(talk):
    text, base = talk.lines(5), talk.word()
    _rotate(talk, [lambda: [("bash", {"command": f"{base} --{talk.word()}"}, text)]])


for _clock in CLOCKS:

    @_loop(f"new-spellings-of-a-long-output-with-{_clock}", within=12)
    def _(talk, clock=_clock):
        text, base = talk.lines(12), talk.word()
        step = lambda: [  # noqa: E731
            ("bash", {"command": f"{base} --{talk.word()}"}, f"{text}\n{talk.clock(clock)}")
        ]
        _rotate(talk, [step])


@_loop("new-spellings-of-four-commands", within=9)
def _(talk):
    steps = [
        lambda text=talk.lines(4), base=talk.word(): [
            ("bash", {"command": f"{base} | {talk.word()}"}, text)
        ]
        for _ in range(4)
    ]
    _rotate(talk, steps)


@_loop("new-spellings-of-one-reading", within=9)
def _(talk):
    text = talk.lines(5)
    _rotate(talk, [lambda: [("search", {"query": talk.words(3)}, text)]])


@_loop("new-explanations-of-one-call", within=9)
def _(talk):
    text, command = talk.lines(3), talk.word()
    _rotate(
        talk,
        [lambda: [("shell", {"command": command, "explanation": talk.words(5)}, text)]],
    )


@_loop("new-explanations-of-one-call-with-a-one-line-answer", within=12)
def _(talk):
    text, command = talk.words(3), talk.word()
    _rotate(
        talk,
        [lambda: [("shell", {"command": command, "explanation": talk.words(5)}, text)]],
    )


@_loop("goodbye-in-new-words", within=20)
def _(talk):
    _rotate(
        talk,
        [lambda: [("bash", {"command": f"echo {(w := talk.words(4))}"}, w)]],
    )


@_loop("nothing-found-in-new-words", within=20)
def _(talk):
    _rotate(talk, [lambda: [("search", {"query": talk.words(2)}, "No results found.")]])


@_loop("pages-beyond-the-end", within=15)
def _(talk):
    text = talk.words(3)
    page = count(90)
    _rotate(talk, [lambda: [("get_page", {"page": next(page)}, text)]])


@_loop("pages-beyond-the-end-by-shell", within=20)
def _(talk):
    page = count(90)
    _rotate(talk, [lambda: [("bash", {"command": f"sed -n {next(page)}p f"}, "")]])


@_loop("one-change-with-a-fresh-key", within=20)
def _(talk):
    order = talk.word()
    _rotate(
        talk,
        [lambda: [("submit_order", {"order": order, "key": talk.clock("uuid")}, "accepted")]],
    )


def _lettered(talk, letters, lines=3, kind="read"):
    steps = dict(zip("ABCD", _steps(talk, 4, kind, lines), strict=True))
    return [steps[letter] for letter in letters]


for _letters in ("AAB", "ABAC", "AABB", "ABACAD", "AAAB", "ABBA", "AAABBB", "ABCB"):
    for _kind in ("read", "shell", "change"):
        for _lines in (1, 4):

            @_loop(f"order-{_letters}-{_kind}-{_lines}-lines", within=10)
            def _(talk, letters=_letters, kind=_kind, lines=_lines):
                _rotate(talk, _lettered(talk, letters, lines, kind))


@_loop("steps-in-a-random-order", within=10)
def _(talk):
    steps = _steps(talk, 4, "mixed", 3)
    for step in steps:
        talk.batch(*step())
    talk.first_repeat()
    for _ in range(LAPS):
        talk.batch(*talk.random.choice(steps)())


# --- Loops: parallel calls ----------------------------------------------------------------------

_family = "parallel calls"

for _size in (2, 3, 6):
    for _kind in ("read", "change", "shell"):
        for _lines in (1, 4):

            @_loop(f"parallel-{_size}-in-any-order-{_kind}-{_lines}-lines", within=6)
            def _(talk, size=_size, kind=_kind, lines=_lines):
                calls = [step()[0] for step in _steps(talk, size, kind, lines)]
                _rotate(talk, [lambda: talk.random.sample(calls, len(calls))])


@_loop("parallel-with-an-answer-missing", within=12)
def _(talk):
    a, b = (step()[0] for step in _steps(talk, 2, "read", 3))
    _rotate(talk, [lambda: [a, (b[0], b[1], None)]])


@_loop("parallel-with-a-new-thought", within=8)
def _(talk):
    (a,) = _steps(talk, 1, "read", 3)[0]()
    _rotate(talk, [lambda: [a, ("think", {"thought": talk.words(5)}, "Logged.")]])


@_loop("parallel-with-an-echoed-thought", within=18)
def _(talk):
    (a,) = _steps(talk, 1, "read", 3)[0]()
    _rotate(talk, [lambda: [a, ("think", {"thought": (t := talk.lines(3))}, t)]])


@_loop("copies-in-one-batch", within=0, ends=False)
def _(talk):
    (a,) = _steps(talk, 1, "change", 1)[0]()
    talk.first_repeat()
    talk.batch(a, a, a, a, a)


@_loop("copies-in-batches-of-three", within=2)
def _(talk):
    (a,) = _steps(talk, 1, "read", 3)[0]()
    _rotate(talk, [lambda: [a, a, a]])


@_loop("copies-in-batches-of-three-with-new-work", within=3)
def _(talk):
    (a,) = _steps(talk, 1, "read", 3)[0]()
    _rotate(talk, [lambda: [a, a, a, a, a, ("read_file", {"p": talk.word()}, talk.lines(3))]])


@_loop("parallel-where-the-partners-change", within=12)
def _(talk):
    calls = [step()[0] for step in _steps(talk, 4, "read", 3)]
    for call in calls:
        talk.batch(call)
    talk.first_repeat()
    for _ in range(LAPS):
        talk.batch(*talk.random.sample(calls, 2))


# --- Loops: errors ------------------------------------------------------------------------------

_family = "errors"


@_loop("missing-tool", within=5)
def _(talk):
    name = talk.word()
    text = f"Error: {name} is not a valid tool, try one of [{talk.word()}, {talk.word()}]."
    args = {"v": talk.word()}
    _rotate(talk, [_fixed((name, args, text, "error"))])


@_loop("missing-tool-with-new-arguments", within=8)
def _(talk):
    name = talk.word()
    text = f"Error: {name} is not a valid tool, try one of [{talk.word()}, {talk.word()}]."
    _rotate(talk, [lambda: [(name, {"v": talk.word()}, text, "error")]])


@_loop("missing-tools-with-new-names", within=16)
def _(talk):
    known = f"try one of [{talk.word()}, {talk.word()}]."

    def step():
        name = talk.word()
        return [(name, {}, f"Error: {name} is not a valid tool, {known}", "error")]

    _rotate(talk, [step])


for _lines in (1, 4):

    @_loop(f"rejected-edits-with-moving-line-numbers-{_lines}-lines", within=8)
    def _(talk, lines=_lines):
        text, number = talk.lines(lines), count(talk.random.randint(3, 400), 7)
        _rotate(
            talk,
            [lambda: [("edit", {"t": talk.words(3)}, f"line {next(number)}: {text}", "error")]],
        )

    @_loop(f"rejected-edit-with-moving-line-numbers-{_lines}-lines", within=8)
    def _(talk, lines=_lines):
        text, number = talk.lines(lines), count(talk.random.randint(3, 400), 7)
        args = {"t": talk.words(3)}
        _rotate(talk, [lambda: [("edit", args, f"line {next(number)}: {text}", "error")]])

    @_loop(f"two-rejected-edits-alternate-{_lines}-lines", within=10)
    def _(talk, lines=_lines):
        steps = [
            _fixed(("edit", {"t": talk.words(3)}, talk.lines(lines), "error")) for _ in range(2)
        ]
        _rotate(talk, steps)

    @_loop(f"two-errors-alternate-with-new-arguments-{_lines}-lines", within=16)
    def _(talk, lines=_lines):
        texts = [talk.lines(lines) for _ in range(2)]
        steps = [
            lambda text=text: [("edit", {"t": talk.words(3)}, text, "error")] for text in texts
        ]
        _rotate(talk, steps)

    @_loop(f"rejected-edits-with-looks-between-{_lines}-lines", within=18)
    def _(talk, lines=_lines):
        text, number = talk.lines(lines), count(1)
        steps = [
            lambda: [("edit", {"t": talk.words(3)}, text, "error")],
            lambda: [("open", {"line": next(number) * 100}, talk.lines(6))],
        ]
        _rotate(talk, steps)

    @_loop(f"rejected-edits-with-shell-looks-between-{_lines}-lines", within=18)
    def _(talk, lines=_lines):
        text = talk.lines(lines)
        steps = [
            lambda: [("edit", {"t": talk.words(3)}, text, "error")],
            lambda: [("bash", {"command": f"grep {talk.word()}"}, talk.lines(6))],
        ]
        _rotate(talk, steps)

    @_loop(f"errors-that-name-the-argument-{_lines}-lines", within=16)
    def _(talk, lines=_lines):
        text = talk.lines(lines)

        def step():
            word = talk.word()
            return [("read_file", {"path": word}, f"No such file: {word}. {text}", "error")]

        _rotate(talk, [step])

    @_loop(f"refused-call-with-new-thoughts-{_lines}-lines", within=16)
    def _(talk, lines=_lines):
        text, args = talk.lines(lines), {"user": talk.word()}
        steps = [
            _fixed(("cancel_order", args, text, "error")),
            lambda: [("think", {"thought": talk.words(8)}, "")],
        ]
        _rotate(talk, steps)

    @_loop(f"refused-call-with-echoed-long-thoughts-{_lines}-lines", within=18)
    def _(talk, lines=_lines):
        text, args = talk.lines(lines), {"user": talk.word()}
        steps = [
            _fixed(("cancel_order", args, text, "error")),
            lambda: [("think", {"thought": (t := talk.lines(3))}, t)],
        ]
        _rotate(talk, steps)

    @_loop(f"politely-refused-call-with-new-thoughts-{_lines}-lines", within=16)
    def _(talk, lines=_lines):
        text, args = talk.lines(lines), {"user": talk.word()}
        steps = [
            _fixed(("cancel_order", args, text)),
            lambda: [("think", {"thought": talk.words(8)}, "")],
        ]
        _rotate(talk, steps)

    @_loop(f"politely-refused-call-with-echoed-thoughts-{_lines}-lines", within=16)
    def _(talk, lines=_lines):
        text, args = talk.lines(lines), {"user": talk.word()}
        steps = [
            _fixed(("cancel_order", args, text)),
            lambda: [("think", {"thought": (t := talk.lines(2))}, t)],
        ]
        _rotate(talk, steps)

    @_loop(f"error-told-as-success-with-moving-numbers-{_lines}-lines", within=20)
    def _(talk, lines=_lines):
        text, number, args = talk.lines(lines), count(3, 7), {"t": talk.words(3)}
        _rotate(talk, [lambda: [("edit", args, f"Error: line {next(number)}: {text}")]])

    @_loop(f"shell-error-told-as-success-{_lines}-lines", within=8)
    def _(talk, lines=_lines):
        text, args = talk.lines(lines), {"command": talk.words(3)}
        _rotate(talk, [lambda: [("bash", args, text)]])


@_loop("failing-shell-command-reworded", within=8)
def _(talk):
    text = f"bash: {talk.word()}: command not found"
    _rotate(talk, [lambda: [("bash", {"command": talk.words(3)}, text, "error")]])


@_loop("validation-error-with-empty-arguments", within=5)
def _(talk):
    text = talk.lines(3)
    _rotate(talk, [_fixed(("write_file", {}, text, "error"))])


@_loop("flip-flop-of-two-edits", within=10)
def _(talk):
    steps = [_fixed(("edit", {"new": talk.word()}, "ok")) for _ in range(2)]
    _rotate(talk, steps)


@_loop("flip-flop-of-two-edits-and-a-failing-test", within=10)
def _(talk):
    test = talk.lines(4)
    run = lambda: [("pytest", {}, f"{test}\n1 failed in {talk.random.random():.2f}s")]  # noqa: E731
    edits = [_fixed(("edit", {"new": talk.word()}, "ok")) for _ in range(2)]
    _rotate(talk, [edits[0], run, edits[1], run])


@_loop("revert-and-redo-with-the-shell", within=10)
def _(talk):
    test = talk.lines(4)
    steps = [
        _fixed(("bash", {"command": "git checkout " + talk.word()}, "Updated 1 path")),
        _fixed(("bash", {"command": "sed -i " + talk.word()}, "")),
        lambda: [
            ("bash", {"command": "pytest"}, f"{test}\n1 failed in {talk.random.random():.2f}s")
        ],
    ]
    _rotate(talk, steps)


# --- Loops: changes whose answer grows -----------------------------------------------------------

_family = "changes whose answer grows"


def _growing(talk):
    line, text = talk.words(2), [talk.words(3) for _ in range(4)]

    def step():
        text.insert(2, line)
        return "\n".join(f"{n}: {t}" for n, t in enumerate(text, 1))

    return step


@_loop("growing-insert", within=9)
def _(talk):
    grow, args = _growing(talk), {"line": 2, "text": talk.word()}
    _rotate(talk, [lambda: [("insert", args, grow())]])


@_loop("growing-insert-with-a-helper", within=20)
def _(talk):
    grow, args = _growing(talk), {"line": 2, "text": talk.word()}
    _rotate(
        talk,
        [lambda: [("insert", args, grow())], _fixed(("sleep", {"seconds": 1}, "Slept."))],
    )


@_loop("growing-insert-with-new-thoughts", within=20)
def _(talk):
    grow, args = _growing(talk), {"line": 2, "text": talk.word()}
    _rotate(
        talk,
        [
            lambda: [("insert", args, grow())],
            lambda: [("think", {"thought": talk.words(5)}, "Logged.")],
        ],
    )


@_loop("growing-insert-and-a-look", within=40)
def _(talk):
    grow, args = _growing(talk), {"line": 2, "text": talk.word()}
    view = {"path": talk.word()}
    _rotate(talk, [lambda: [("insert", args, "ok")], lambda: [("view", view, grow())]])


@_loop("two-growing-inserts-alternate", within=40)
def _(talk):
    steps = [
        lambda grow=_growing(talk), args={"text": talk.word()}: [("insert", args, grow())]
        for _ in range(2)
    ]
    _rotate(talk, steps)


@_loop("growing-append-by-shell", within=19)
def _(talk):
    grow, args = _growing(talk), {"command": f"echo {talk.word()} >> f; cat f"}
    _rotate(talk, [lambda: [("bash", args, grow())]])


@_loop("numbered-receipts", within=9)
def _(talk):
    number, args = count(1001), {"to": talk.word()}
    _rotate(talk, [lambda: [("send_mail", args, f"Sent as message {next(number)}.")]])


@_loop("repeated-write-with-a-receipt", within=5)
def _(talk):
    _rotate(talk, [_fixed(("write_file", {"p": talk.word()}, "File written successfully."))])


@_loop("silent-command", within=5)
def _(talk):
    _rotate(talk, [_fixed(("bash", {"command": talk.words(2)}, ""))])


@_loop("silent-command-with-a-new-receipt-tool", within=5)
def _(talk):
    _rotate(talk, [_fixed((talk.word(), {"v": talk.words(2)}, ""))])


# --- Loops: polls --------------------------------------------------------------------------------

_family = "polls"


@_loop("poll-undeclared-constant", within=5)
def _(talk):
    _rotate(talk, [_fixed(("check_job", {"id": talk.word()}, "pending"))])


@_loop("poll-undeclared-empty", within=5)
def _(talk):
    _rotate(talk, [_fixed(("read_output", {"id": talk.word()}, ""))])


@_loop("poll-undeclared-with-sleep", within=12)
def _(talk):
    steps = [
        _fixed(("check_job", {"id": talk.word()}, "pending")),
        _fixed(("sleep", {"seconds": 30}, "")),
    ]
    _rotate(talk, steps)


@_loop("poll-undeclared-with-growing-sleeps", within=12)
def _(talk):
    seconds = count(1)
    steps = [
        _fixed(("check_job", {"id": talk.word()}, "pending")),
        lambda: [("sleep", {"seconds": next(seconds)}, "")],
    ]
    _rotate(talk, steps)


@_loop("poll-declared-constant", within=20, poll_tools=("job_state",))
def _(talk):
    _rotate(talk, [_fixed(("job_state", {"id": talk.word()}, "pending"))])


@_loop("poll-declared-with-sleep", within=40, poll_tools=("job_state",))
def _(talk):
    steps = [
        _fixed(("job_state", {"id": talk.word()}, "pending")),
        _fixed(("sleep", {"seconds": 30}, "Slept.")),
    ]
    _rotate(talk, steps)


for _clock in ("idle", "took", "iso", "ms"):
    for _name in ("check_job", "job_state"):

        @_loop(f"poll-declared-{_name}-with-{_clock}", within=20, poll_tools=(_name,))
        def _(talk, name=_name, clock=_clock):
            args, text = {"id": talk.word()}, talk.words(2)
            _rotate(talk, [lambda: [(name, args, f"{text} {talk.clock(clock)}")]])


@_loop("no-answers-at-all", within=15)
def _(talk):
    _rotate(talk, [_fixed(("search", {"q": talk.word()}, None))])


@_loop("rotation-3-without-answers", within=15)
def _(talk):
    steps = [_fixed((name, {"q": talk.word()}, None)) for name in ("search", "edit", "bash")]
    _rotate(talk, steps)


@_loop("loop-after-much-good-work", within=9)
def _(talk):
    for _ in range(300):
        talk.call("read_file", {"p": talk.word()}, talk.lines(8))
        talk.call("edit", {"t": talk.word()}, "ok")
    _rotate(talk, _steps(talk, 3, "mixed", 3))


@_loop("rotation-3-recovers-once-a-lap-of-ten", within=30)
def _(talk):
    # Every tenth batch is one new one-line look; the rest goes round.
    steps = _steps(talk, 3, "read", 3)
    for step in steps:
        talk.batch(*step())
    talk.first_repeat()
    for n in range(LAPS):
        if n % 10 == 9:
            talk.call("read_file", {"p": talk.word()}, talk.words(3))
        else:
            talk.batch(*steps[n % 3]())


# --- Good work: reading --------------------------------------------------------------------------

_family = "reading"

for _name, _args in (
    ("read_file", lambda n: {"path": "f", "offset": n * 40}),
    ("get_page", lambda n: {"page": n}),
    ("bash", lambda n: {"command": f"sed -n '{n * 40},{n * 40 + 39}p' f"}),
    ("query_table", lambda n: {"sql": f"select * from t limit 10 offset {n * 10}"}),
    ("frobnicate", lambda n: {"page": n}),
):
    for _lines in (1, 8, 80):

        @_benign(f"paging-30-{_name}-{_lines}-lines")
        def _(talk, name=_name, args=_args, lines=_lines):
            for n in range(30):
                talk.call(name, args(n), talk.lines(lines))


@_benign("paging-with-a-header")
def _(talk):
    head = talk.lines(5)
    for n in range(30):
        talk.call("get_page", {"page": n}, f"{head}\n{talk.words(3)}\n{head}")


@_benign("paging-numbers-only")
def _(talk):
    for n in range(30):
        talk.call("get_page", {"page": n}, "\n".join(f"row {n * 10 + k}" for k in range(10)))


@_benign("reading-30-files")
def _(talk):
    for _ in range(30):
        talk.call("read_file", {"path": talk.word()}, talk.lines(12))


@_benign("reading-30-files-in-parallel")
def _(talk):
    for _ in range(30):
        talk.batch(*[("read_file", {"path": talk.word()}, talk.lines(5)) for _ in range(4)])


@_benign("reading-30-short-files")
def _(talk):
    for _ in range(30):
        talk.call("read_file", {"path": talk.word()}, talk.random.choice(["", "{}", "x = 1"]))


@_benign("reading-similar-files")
def _(talk):
    head = talk.lines(20)
    for _ in range(30):
        talk.call("read_file", {"path": talk.word()}, f"{head}\n{talk.words(2)}")


@_benign("scroll-down-13")
def _(talk):
    for _ in range(13):
        talk.call("scroll_down", {}, talk.lines(20))


@_benign("scroll-down-13-with-a-footer")
def _(talk):
    foot = talk.lines(3)
    for n in range(13):
        talk.call("scroll_down", {}, f"({n * 100} more lines above)\n{talk.lines(20)}\n{foot}")


@_benign("searching-13-dates")
def _(talk):
    for n in range(13):
        talk.call("search_flights", {"from": "AAA", "date": f"2025-05-{n + 1:02}"}, "[]")


@_benign("searching-13-dates-with-one-text")
def _(talk):
    text = talk.lines(3)
    for n in range(7):
        talk.call("search_flights", {"from": "AAA", "date": f"2025-05-{n + 1:02}"}, text)
    talk.call("search_flights", {"from": "AAA", "date": "2025-05-08"}, talk.lines(4))


@_benign("searching-13-words-in-vain")
def _(talk):
    for _ in range(13):
        talk.call("search", {"query": talk.words(2)}, "No results found.")


@_benign("coming-back-to-one-file-between-others")
def _(talk):
    args, text = {"path": talk.word()}, talk.lines(6)
    for _ in range(10):
        talk.call("read_file", args, text)
        talk.call("read_file", {"path": talk.word()}, talk.lines(6))


@_benign("coming-back-to-one-file-between-short-ones")
def _(talk):
    args, text = {"path": talk.word()}, talk.lines(6)
    for _ in range(4):
        talk.call("read_file", args, text)
        talk.call("read_file", {"path": talk.word()}, talk.words(6))


@_benign("a-reminder-file-read-in-every-batch")
def _(talk):
    args, text = {"path": talk.word()}, talk.lines(6)
    for _ in range(20):
        talk.batch(("read_file", args, text), ("read_file", {"path": talk.word()}, talk.lines(6)))


# --- Good work: editing and running --------------------------------------------------------------

_family = "editing and running"

TESTS = {
    "many-lines": lambda talk, text: text,
    "one-line": lambda talk, text: "1 failed",
    "clock": lambda talk, text: f"{text}\n1 failed in {talk.random.random():.2f}s",
    "one-line-clock": lambda talk, text: f"1 failed in {talk.random.random():.2f}s",
    "silent": lambda talk, text: "",
}
EDITS = {
    "edit-tool": lambda talk: ("edit_file", {"new": talk.words(4)}, "Edit applied."),
    "edit-tool-showing-the-file": lambda talk: (
        "edit_file",
        {"new": (w := talk.words(4))},
        f"ok\n{w}",
    ),
    "unknown-tool": lambda talk: ("str_replace_based", {"new": talk.words(4)}, ""),
    "heredoc": lambda talk: ("bash", {"command": f"cat > f <<EOF\n{talk.lines(4)}\nEOF"}, ""),
    "sed": lambda talk: ("bash", {"command": f"sed -i s/{talk.word()}/{talk.word()}/ f"}, ""),
    "shell-with-diff": lambda talk: (
        "bash",
        {"command": f"sed -i s/{(w := talk.word())}/x/ f; git diff"},
        f"--- f\n+++ f\n- {w}\n+ x",
    ),
    "shell-with-receipt": lambda talk: (
        "bash",
        {"command": f"python patch.py {talk.word()}"},
        "patched 1 file",
    ),
    "shell-with-two-line-receipt": lambda talk: (
        "bash",
        {"command": f"python patch.py {talk.word()}"},
        "patched 1 file\nexit code 0",
    ),
}
for _edit, _change in EDITS.items():
    for _test, _output in TESTS.items():
        for _runner, _status in (
            ("run_tests", "success"),
            ("bash", "success"),
            ("run_tests", "error"),
            ("bash", "error"),
        ):

            @_benign(f"edit-and-rerun-10-{_edit}-{_test}-{_runner}-{_status}")
            def _(talk, change=_change, output=_output, runner=_runner, status=_status):
                text, args = talk.lines(6), {"command": "pytest -x"}
                for _ in range(10):
                    talk.batch(change(talk))
                    talk.call(runner, args, output(talk, text), status)


@_benign("edit-and-rerun-with-a-moving-line-number")
def _(talk):
    text = talk.lines(4)
    for n in range(10):
        talk.call("edit_file", {"new": talk.words(4)}, "Edit applied.")
        talk.call("run_tests", {}, f"{text}\nf.py:{n * 3}: AssertionError", "error")


for _edit, _change in EDITS.items():

    @_benign(f"edit-run-and-lint-10-{_edit}")
    def _(talk, change=_change):
        text, lint = talk.lines(6), talk.lines(3)
        for _ in range(10):
            talk.batch(change(talk))
            talk.call("bash", {"command": "pytest -x"}, text)
            talk.call("bash", {"command": "ruff check"}, lint)


@_benign("edit-look-and-rerun")
def _(talk):
    text, view = talk.lines(4), {"path": "f"}
    for _ in range(10):
        talk.call("view", view, talk.lines(6))
        talk.call("edit_file", {"new": talk.words(4)}, "Edit applied.")
        talk.call("run_tests", {}, text)


@_benign("reread-after-each-edit")
def _(talk):
    lines = [talk.words(3) for _ in range(20)]
    for n in range(12):
        lines[n] = talk.words(3)
        talk.call("edit_file", {"new": lines[n]}, "Edit applied.")
        talk.call("read_file", {"path": "f"}, "\n".join(lines))


@_benign("reread-an-unchanged-file-after-each-edit")
def _(talk):
    text = talk.lines(6)
    for _ in range(12):
        talk.call("edit_file", {"new": talk.words(3)}, "Edit applied.")
        talk.call("read_file", {"path": "f"}, text)


@_benign("reread-after-each-deletion")
def _(talk):
    lines = [talk.words(3) for _ in range(30)]
    for _ in range(15):
        gone = lines.pop()
        talk.call("delete_line", {"line": gone}, "Deleted.")
        talk.call("read_file", {"path": "f"}, "\n".join(lines))


@_benign("status-between-work")
def _(talk):
    for _ in range(12):
        talk.call("edit_file", {"new": talk.words(3)}, "ok")
        talk.call("git_status", {}, "nothing to commit")
        talk.call("read_file", {"path": talk.word()}, talk.lines(5))


@_benign("status-between-silent-work-by-shell")
def _(talk):
    for _ in range(12):
        talk.call("bash", {"command": f"mv {talk.word()} {talk.word()}"}, "")
        talk.call("bash", {"command": "git status"}, "On branch main\nnothing to commit")


@_benign("count-of-rows-between-inserts-by-shell")
def _(talk):
    for _ in range(12):
        talk.call("bash", {"command": f"psql -c 'insert {talk.word()}'"}, "INSERT 0 1")
        talk.call(
            "bash", {"command": "psql -c 'select count(*) from errors'"}, " count\n-----\n  0"
        )


@_benign("build-between-many-shell-edits")
def _(talk):
    text = talk.lines(5)
    for _ in range(9):
        for _ in range(3):
            talk.call("bash", {"command": f"sed -i {talk.word()}"}, "")
        talk.call("bash", {"command": "make"}, text, "error")


@_benign("install-retry")
def _(talk):
    args, text = {"command": "make"}, talk.lines(4)
    for _ in range(6):
        talk.call("bash", args, text, "error")
        talk.call("bash", {"command": f"apt install {talk.word()}"}, talk.lines(5))
    talk.call("bash", args, talk.lines(4))


@_benign("install-retry-with-quiet-installs")
def _(talk):
    args, text = {"command": "make"}, talk.lines(4)
    for _ in range(6):
        talk.call("bash", args, text, "error")
        talk.call("bash", {"command": f"apt install -qq {talk.word()}"}, "")
    talk.call("bash", args, talk.lines(4))


# --- Good work: silent commands and receipts -----------------------------------------------------

_family = "silent commands and receipts"

RECEIPTS = {
    "empty": "",
    "ok": "ok",
    "one-line": "File written successfully.",
    "two-lines": "Command executed.\nExit code: 0",
    "three-lines": "Your command ran successfully and printed nothing.\n(cwd: /repo)\nbash-$",
    "json": '{"success": true}',
    "indented-json": '{\n  "success": true,\n  "error": null\n}',
}
for _receipt, _text in RECEIPTS.items():
    for _name in ("bash", "write_file", "click", "frobnicate", "execute_code", "run_sql"):

        @_benign(f"30-different-{_name}-with-{_receipt}")
        def _(talk, name=_name, text=_text):
            for _ in range(30):
                talk.call(name, {"v": talk.words(3)}, text)

    @_benign(f"commands-and-their-{_receipt}-after-other-work")
    def _(talk, text=_text):
        for _ in range(3):
            talk.call("bash", {"command": talk.words(2)}, f"{talk.lines(3)}\n{text}")
        for _ in range(20):
            talk.call("bash", {"command": talk.words(3)}, text)

    @_benign(f"pairs-of-writes-with-{_receipt}")
    def _(talk, text=_text):
        for _ in range(15):
            talk.batch(*[("write_file", {"v": talk.words(3)}, text) for _ in range(3)])


@_benign("thinking-20-times")
def _(talk):
    for _ in range(20):
        talk.call("think", {"thought": talk.words(9)}, "Your thought has been logged.")


@_benign("to-do-list-kept-up-to-date")
def _(talk):
    for _ in range(20):
        talk.call("write_todos", {"todos": talk.words(4)}, "ok")
        talk.call("read_file", {"path": talk.word()}, talk.lines(5))


@_benign("calculators")
def _(talk):
    for _ in range(25):
        a, b = talk.random.randint(1, 9), talk.random.randint(10, 99)
        name = talk.random.choice(["calculator", "calculate", "python"])
        talk.call(name, {"expression": f"{a} * {b} + {talk.batches}"}, str(a * b + talk.batches))


@_benign("calculators-with-equal-results")
def _(talk):
    for n in range(14):
        talk.call("calculate", {"expression": f"{n} - {n}"}, "0")


@_benign("sub-tasks")
def _(talk):
    for _ in range(12):
        talk.batch(*[("task", {"description": talk.words(9)}, talk.lines(6)) for _ in range(3)])


@_benign("sub-tasks-that-answer-done")
def _(talk):
    for _ in range(12):
        talk.call("task", {"description": talk.words(9)}, "Done.")


# --- Good work: waiting, retrying, browsing ------------------------------------------------------

_family = "waiting, retrying, browsing"


@_benign("retry-that-works-at-the-4th")
def _(talk):
    args = {"url": talk.word()}
    for _ in range(3):
        talk.call("fetch", args, "503 Service Unavailable", "error")
    talk.call("fetch", args, talk.lines(5))


@_benign("retry-that-works-at-the-4th-with-sleeps")
def _(talk):
    args = {"url": talk.word()}
    for n in range(3):
        talk.call("fetch", args, "503 Service Unavailable", "error")
        talk.call("sleep", {"seconds": 2**n}, f"Slept {2**n}s")
    talk.call("fetch", args, talk.lines(5))


@_benign("retry-of-a-change-that-works-at-the-4th")
def _(talk):
    args = {"to": talk.word()}
    for _ in range(3):
        talk.call("send_mail", args, "Error: timeout", "error")
    talk.call("send_mail", args, "Sent.")


for _name in ("check_build", "get_status", "read_output", "bash", "job_state"):

    @_benign(f"long-poll-from-10-to-100-percent-{_name}")
    def _(talk, name=_name):
        args = {"id": talk.word()}
        # An unknown tool counts as changing, which has a ceiling of 10 back to back.
        for percent in range(10, 100, 10 if name != "job_state" else 12):
            talk.call(name, args, f"building: {percent} %")
        talk.call(name, args, "done")


@_benign("slow-poll-where-each-value-stays-a-while")
def _(talk):
    args = {"id": talk.word()}
    for percent in range(10, 101, 10):
        for _ in range(3):
            talk.call("check_build", args, f"building: {percent} %")


@_benign("slow-poll-with-sleeps")
def _(talk):
    args = {"id": talk.word()}
    for percent in range(10, 101, 10):
        for _ in range(3):
            talk.call("check_build", args, f"building: {percent} %")
            talk.call("sleep", {"seconds": 10}, "")


@_benign("long-poll-of-60-with-a-moving-count")
def _(talk):
    args = {"id": talk.word()}
    for n in range(60):
        talk.call("get_status", args, json.dumps({"state": "running", "done": n, "of": 60}))


for _key in ("percentage", "coverage", "remaining", "usage", "message", "candidate"):

    @_benign(f"poll-of-25-with-a-moving-{_key}")
    def _(talk, key=_key):
        args, status = {"id": talk.word()}, talk.words(2)
        for n in range(25):
            talk.call("get_status", args, f"{status}\n{json.dumps({key: n * 3})}")


for _name in ("job_state", "check_build"):

    @_benign(f"long-declared-poll-{_name}", poll_tools=(_name,))
    def _(talk, name=_name):
        args = {"id": talk.word()}
        for n in range(5):
            for _ in range(15):
                talk.call(name, args, f"step {n}")


@_benign("declared-poll-with-sleeps", poll_tools=("job_state",))
def _(talk):
    args = {"id": talk.word()}
    for n in range(5):
        for _ in range(6):
            talk.call("job_state", args, f"step {n}")
            talk.call("sleep", {"seconds": 10}, "")


@_benign("declared-poll-with-one-line-work", poll_tools=("job_state",))
def _(talk):
    args = {"id": talk.word()}
    for _ in range(15):
        talk.call("job_state", args, "running\nqueue 3")
        talk.call("read_file", {"path": talk.word()}, talk.words(2))


for _n in (15, 19, 30):

    @_benign(f"shell-polling-a-growing-log-{_n}")
    def _(talk, n=_n):
        log = [talk.words(3)]
        for _ in range(n):
            log += [talk.words(4), talk.words(4)]
            talk.call("bash", {"command": "tail -n 20 build.log"}, "\n".join(log[-20:]))

    @_benign(f"shell-polling-a-growing-log-{_n}-with-sleeps")
    def _(talk, n=_n):
        log = [talk.words(3)]
        for _ in range(n):
            log += [talk.words(4), talk.words(4)]
            talk.call("bash", {"command": "sleep 60"}, "")
            talk.call("bash", {"command": "tail -n 20 build.log"}, "\n".join(log[-20:]))


@_benign("waiting-for-the-output-of-a-build")
def _(talk):
    for _ in range(25):
        talk.call("read_output", {"id": 3}, talk.lines(2))
        talk.call("sleep", {"seconds": 30}, "Slept.")


for _name in ("browser_snapshot", "screenshot", "get_dom"):

    @_benign(f"clicking-with-{_name}-after-each")
    def _(talk, name=_name):
        page = [talk.words(3) for _ in range(20)]
        for n in range(25):
            page[n % 20] = talk.words(3)
            talk.call("browser_click", {"ref": talk.word()}, "Clicked.")
            talk.call(name, {}, "\n".join(page))

    @_benign(f"clicking-with-an-unchanged-{_name}-after-each")
    def _(talk, name=_name):
        page = talk.lines(20)
        for _ in range(15):
            talk.call("browser_click", {"ref": talk.word()}, "Clicked.")
            talk.call(name, {}, page)

    @_benign(f"clicking-next-with-{_name}-after-each")
    def _(talk, name=_name):
        for _ in range(15):
            talk.call("browser_click", {"ref": "next"}, "Clicked.")
            talk.call(name, {}, talk.lines(20))


@_benign("filling-a-form-with-tabs-between")
def _(talk):
    for _ in range(15):
        talk.call("type_text", {"text": talk.word()}, "ok")
        talk.call("press_key", {"key": "Tab"}, "ok")


@_benign("a-game-of-few-moves")
def _(talk):
    for _ in range(40):
        move = talk.random.choice(["left", "up", "right", "down"])
        talk.call("move", {"to": move}, talk.lines(4))


@_benign("drawing-next-items-and-working-on-them")
def _(talk):
    for _ in range(25):
        item = talk.word()
        talk.call("next_item", {}, item)
        talk.call("process", {"item": item}, "ok")


@_benign("nine-user-turns-with-one-question")
def _(talk):
    args, text = {"q": talk.word()}, talk.lines(3)
    for _ in range(9):
        talk.human()
        talk.call("search", args, text)


@_benign("nine-user-turns-with-two-calls-each")
def _(talk):
    a, b = ({"q": talk.word()} for _ in range(2))
    for _ in range(9):
        talk.human()
        talk.call("search", a, "3 hits")
        talk.call("update_ticket", b, "ok")


@_benign("migrating-30-files-step-by-step")
def _(talk):
    for _ in range(30):
        path = talk.word()
        talk.call("search", {"path": path}, f"{path}: 3 matches")
        talk.call("move_file", {"path": path}, "ok")
        talk.call("bash", {"command": f"python -m compileall {path}"}, "")


@_benign("cd-and-ls")
def _(talk):
    for _ in range(15):
        talk.call("bash", {"command": f"cd {talk.word()}"}, "")
        talk.call("bash", {"command": "ls"}, talk.lines(3))


@_benign("undoing-step-by-step")
def _(talk):
    for n in range(8):
        talk.call("undo", {}, f"Undid change {9 - n}.")


@_benign("deleting-items-by-uuid")
def _(talk):
    for _ in range(25):
        talk.call("delete_item", {"id": talk.clock("uuid")}, "deleted")


@_benign("two-agents-worth-of-parallel-work")
def _(talk):
    for _ in range(20):
        talk.batch(
            ("read_file", {"path": talk.word()}, talk.lines(3)),
            ("edit_file", {"t": talk.word()}, "ok"),
            ("bash", {"command": talk.words(2)}, ""),
        )


@_benign("one-of-eight-fetches-fails-each-time")
def _(talk):
    for n in range(12):
        calls = [("fetch", {"url": talk.word()}, talk.lines(3)) for _ in range(7)]
        calls.insert(n % 8, ("fetch", {"url": talk.word()}, "timeout", "error"))
        talk.batch(*calls)


@_benign("reading-nothing-new-seven-times")
def _(talk):
    steps = _steps(talk, 7, "read", 3)
    for _ in range(2):
        for step in steps:
            talk.batch(*step())


def judge(shape, seed, policy=None):
    """What the guard got wrong, in words; empty when nothing."""
    talk, policy = shape.talk(seed), shape.policy(policy)
    verdict = read_through(talk.events, policy)
    if not shape.loop:
        if verdict.ask is None:
            return ""
        return f"asked at batch {verdict.ask} of {talk.batches} by {verdict.rules}"
    limit = talk.repeat + shape.within
    if verdict.ask is None:
        told = f", warned at {verdict.warn}" if verdict.warn else ""
        return f"never asked in {talk.batches} batches{told}"
    if verdict.ask > limit:
        return f"asked at batch {verdict.ask}, {limit} was expected, by {verdict.rules}"
    if shape.ends:
        alone = read_through(talk.events, policy, unattended=True)
        if alone.stop is None:
            return (
                f"asked at {verdict.ask} by {verdict.rules}, but unattended it never ends in "
                f"{talk.batches} batches (held first at {alone.held})"
            )
    return ""


def main():
    """Print what the default guard makes of all shapes."""
    import tests.rules.shapes_by_trade  # noqa: F401 - adds its shapes

    wrong = 0
    for shape in SHAPES.values():
        told = next(filter(None, (judge(shape, seed) for seed in SEEDS)), None)
        if told:
            wrong += 1
            print(f"{'loop  ' if shape.loop else 'benign'} {shape.name}: {told}")
    print(f"{len(SHAPES)} shapes, {wrong} not as expected")


if __name__ == "__main__":
    # This file is two modules now; the shapes are those of the one that the other files import.
    from tests.rules.shapes import main as of_all

    of_all()
