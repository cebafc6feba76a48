"""Does a reader count every message once, however a history reaches it?"""

import json

import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_loopguard.messages import MessageReader, refusal_messages, tool_calls_of

from langchain_loopguard import LoopGuard, LoopGuardPolicy
from langchain_loopguard.core.decision import Action

POLICY = LoopGuardPolicy()
SECRET = "S3CR3T"
MOST_STATE = 9216


class ReaderMachine(RuleBasedStateMachine):
    """One reader reads at every step, one is restored each time, one reads now and then."""

    def __init__(self):
        super().__init__()
        self.history = []
        self.reader = MessageReader(LoopGuard(POLICY))
        self.restored = MessageReader(LoopGuard(POLICY))
        self.late = MessageReader(LoopGuard(POLICY))
        self.number = 0

    def _id(self, kind):
        self.number += 1
        return f"{kind}{self.number}"

    def _read(self):
        state = json.loads(json.dumps(self.restored.to_state(), allow_nan=False))
        self.restored = MessageReader.from_state(POLICY, state)
        self.reader.read(self.history)
        self.restored.read(self.history)

    @rule(
        names=st.lists(st.sampled_from(["read", "edit", "bash"]), min_size=1, max_size=3),
        q=st.sampled_from([SECRET, 1]),
        content=st.sampled_from(["same", SECRET, "a\nb", ""]) | st.text(max_size=4),
        status=st.sampled_from(["success", "error"]),
        odd=st.sampled_from([{}, {}, {"lc_source": "loop_guard"}, {"loop_guard": {"notices": 1}}]),
    )
    def batch(self, names, q, content, status, odd):
        made = [{"name": name, "args": {"q": q}, "id": self._id("c")} for name in names]
        asked = AIMessage("", id=self._id("a"), tool_calls=made)
        self._read()
        decisions = [reader.check(asked) for reader in (self.reader, self.restored)]
        assert decisions[0].action is decisions[1].action
        assert self.reader.check(asked) is decisions[0]
        self.history.append(asked)
        if decisions[0].action >= Action.ASK:
            for reader, decision in zip((self.reader, self.restored), decisions, strict=True):
                reader.refuse(decision)
            self.history += refusal_messages(tool_calls_of(asked), decisions[0].refusal)
        else:
            self.history += [
                ToolMessage(content, tool_call_id=one["id"], status=status, additional_kwargs=odd)
                for one in made
            ]
        self._read()

    @rule(text=st.sampled_from(["go on", SECRET]), marked=st.booleans())
    def human(self, text, marked):
        extra = {"lc_source": "summarization"} if marked else {}
        self.history.append(HumanMessage(text, id=self._id("h"), additional_kwargs=extra))

    @rule(message=st.sampled_from([SystemMessage("x"), AIMessage("I go on.", id="said")]))
    def other_message(self, message):
        self.history.append(message)

    @rule()
    def read_again(self):
        self._read()
        before = orjson.dumps(self.reader.to_state())
        self.reader.read(self.history)
        assert orjson.dumps(self.reader.to_state()) == before

    @rule()
    def catch_up(self):
        self.late.read(self.history)
        self._read()
        assert self.late.guard.ledger().batches <= self.reader.guard.ledger().batches

    @invariant()
    def they_agree(self):
        assert self.reader.guard.ledger() == self.restored.guard.ledger()

    @invariant()
    def the_state_is_small_and_tells_nothing(self):
        written = orjson.dumps(self.reader.to_state())
        assert len(written) <= MOST_STATE
        assert SECRET.encode() not in written


TestReader = ReaderMachine.TestCase
TestReader.settings = settings(
    max_examples=30, stateful_step_count=14, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
