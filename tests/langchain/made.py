"""Makes messages and conversations for the tests of this folder."""

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.decision import Action, Decision, Finding
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide

LOOK = ("look", {"at": "stock"})


def said(number, *calls, bad=(), name=None, text=""):
    """Make an AI message of (tool, arguments) pairs, and of unparsed texts in `bad`."""
    made = [
        {"name": tool, "args": args, "id": f"call_{number}_{place}", "type": "tool_call"}
        for place, (tool, args) in enumerate(calls)
    ]
    unread = [
        {
            "name": "broken",
            "args": args,
            "id": f"bad_{number}_{place}",
            "error": "no JSON",
            "type": "invalid_tool_call",
        }
        for place, args in enumerate(bad)
    ]
    return AIMessage(
        text, id=f"ai_{name or ''}{number}", tool_calls=made, invalid_tool_calls=unread, name=name
    )


def result(number, text="nothing", place=0, **more):
    """Make the result of a call of `said`."""
    return ToolMessage(
        text, tool_call_id=f"call_{number}_{place}", id=f"r_{number}_{place}", **more
    )


def decision(action=Action.ASK, *, loop="same", threshold=5):
    """Make a decision with one finding, or none."""
    record = LoopRecord(9)
    if action is Action.ALLOW:
        return Decision(action, (), record)
    finding = Finding(
        "same_answer",
        action,
        tools=("look",),
        count=5,
        threshold=threshold,
        since=4,
        loop=loop,
        to_model="Try something else.",
        to_person="look brought the same 5 times.",
    )
    return Decision(action, (finding,), record)


class LoopRecord:
    """What a decision's record is to the layer."""

    def __init__(self, number):
        self.number = number
        self.calls = ({"name": "look", "id": "c1"},)
        self.used = False


class Talk:
    """A conversation that a reader follows as an adapter would, in mode `interrupt`."""

    def __init__(self, **options):
        self.options = Options(**options)
        self.reader = Reader(self.options)
        self.messages = []
        self.asked = []
        self.number = 0

    def human(self, text="Please do it.", *, run=True, **more):
        self.messages.append(HumanMessage(text, id=f"h_{len(self.messages)}", **more))
        if run:
            self.reader.start_run(self.messages)
        return self

    def step(self, *calls, text="nothing", bad=(), name=None, restart=True):
        """Have the model make a step; tells whether a person is asked (and lets it run)."""
        self.number += 1
        self.messages.append(said(self.number, *(calls or (LOOK,)), bad=bad, name=name))
        if restart:
            self.reader = Reader.from_state(self.options, self.reader.to_state())
        self.reader.read(self.messages)
        found = self.reader.check(last_step(self.messages))
        self.asked.append(found.action >= Action.ASK)
        for place, _ in enumerate(calls or (LOOK,)):
            self.messages.append(result(self.number, text, place))
        return found

    def settle(self, found, reply):
        """Carry out what a person answered about the step made last."""
        step = last_step(self.messages)
        step = last_step(self.messages[: step.index + 1])
        outcome = decide(
            found, step, mode="interrupt", can_ask=True, options=self.options, reply=reply
        )
        self.reader.settle(step, found, outcome)
        return outcome
