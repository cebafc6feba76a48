"""Is a reader given out for the counts that it was saved as, and for nothing else?"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.graph.at_hand import AtHand
from langchain_loopguard.messages import MessageReader
from langchain_loopguard.node import LoopGuardNode
from langchain_loopguard.spare import filled, spared
from tests.conversations import load
from tests.hosts import ai_calls


@pytest.fixture
def message():
    return AIMessage("", id="a1", tool_calls=[{"name": "search", "args": {"q": "a"}, "id": "c1"}])


@pytest.fixture
def reader(message):
    reader = MessageReader(LoopGuard())
    reader.check(message)
    return reader


class TestTaking:
    def test_the_same_counts_give_the_reader(self, reader, message):
        at_hand, counts = AtHand(), reader.to_state()
        at_hand.keep(counts, reader)
        assert at_hand.take(counts, message) is reader

    def test_equal_counts_out_of_a_store_give_none(self, reader, message):
        at_hand, counts = AtHand(), reader.to_state()
        at_hand.keep(counts, reader)
        assert at_hand.take(json.loads(json.dumps(counts)), message) is None

    def test_a_reader_is_given_once(self, reader, message):
        at_hand, counts = AtHand(), reader.to_state()
        at_hand.keep(counts, reader)
        at_hand.take(counts, message)
        assert at_hand.take(counts, message) is None

    def test_only_the_latest_are_kept(self, message):
        at_hand = AtHand()
        all_counts = [{"n": n} for n in range(1000)]
        for counts in all_counts:
            at_hand.keep(counts, MessageReader(LoopGuard()))
        kept = [counts for counts in all_counts if at_hand.take(counts, message) is not None]
        assert kept == all_counts[-64:]

    def test_threads_share_it(self, message):
        at_hand = AtHand()

        def use(number):
            for _ in range(200):
                counts, reader = {"n": number}, MessageReader(LoopGuard())
                at_hand.keep(counts, reader)
                assert at_hand.take(counts, message) in (reader, None)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, range(80)))

    def test_nothing_of_a_call_is_kept_with_saved_counts(self, reader):
        AtHand().keep(reader.to_state(), reader)
        assert reader._decision is None


class TestACheckThatWasNotSaved:
    def test_is_at_hand_for_its_message(self, reader, message):
        at_hand, counts = AtHand(), {}
        at_hand.keep(counts, reader, message)
        assert at_hand.take(counts, message) is reader

    def test_is_not_for_another_message(self, reader, message):
        at_hand, counts = AtHand(), {}
        at_hand.keep(counts, reader, message)
        assert at_hand.take(counts, message.model_copy()) is None

    def test_is_not_where_its_arguments_are_large(self):
        at_hand, counts = AtHand(), {}
        for size, kept in ((10_000, True), (100_000, False)):
            args = {"text": "x" * size}
            message = AIMessage("", id="a", tool_calls=[{"name": "w", "args": args, "id": "1"}])
            reader = MessageReader(LoopGuard())
            reader.check(message)
            at_hand.keep(counts, reader, message)
            assert (at_hand.take(counts, message) is reader) is kept

    def test_is_not_when_somebody_has_changed_the_calls_in_place(self, reader, message):
        at_hand, counts = AtHand(), {}
        at_hand.keep(counts, reader, message)
        message.tool_calls = [{"name": "search", "args": {"q": "b"}, "id": "c1"}]
        assert at_hand.take(counts, message) is None


def verdicts(events, policy, *, through_json):  # noqa: C901 - a conversation told in order
    """Play a conversation through a node as a graph would; gives where it sent the run."""
    node = LoopGuardNode(policy, on_detected="refuse", fail_open=False)
    node._behind_tools = True
    messages, counts, went = [], None, []

    def ask(number):
        nonlocal counts
        if through_json:
            counts = json.loads(json.dumps(counts))
        command = node({"messages": list(messages), "loop_guard": counts})
        update = command.update or {}
        counts = update.get("loop_guard", counts)
        for answer in update.get("messages", ()):
            known = next((at for at, m in enumerate(messages) if m.id == answer.id), None)
            if known is None or answer.id is None:
                messages.append(answer)
            else:
                messages[known] = answer
        went.append((number, command.goto, len(update.get("messages", ()))))
        return command.goto

    for number, event in enumerate(events):
        if event["type"] == "human":
            messages.append(HumanMessage("go", id=f"h{number}"))
        if event["type"] != "batch" or not event["calls"]:
            continue
        calls = [(call["name"], call["args"]) for call in event["calls"]]
        said = ai_calls(calls, number)
        said.id = f"a{number}"
        messages.append(said)
        if ask(number) == "tools":
            answers = {answer["id"]: answer for answer in event.get("results") or ()}
            for place, call in enumerate(event["calls"]):
                answer = answers.get(call["id"], {"content": "", "status": "success"})
                messages.append(
                    ToolMessage(
                        answer["content"],
                        id=f"t{number}.{place}",
                        tool_call_id=f"call_{number}_{place}",
                        name=call["name"],
                        status=answer["status"],
                    )
                )
            ask(number)
        elif went[-1][1] == "__end__":
            break
    return went


@pytest.mark.parametrize("policy", [LoopGuardPolicy(), LoopGuardPolicy.seed()], ids=str)
def test_a_run_goes_the_same_way_with_and_without_readers_at_hand(policy):
    for run in [*load("cases"), *load("corpus")[::40]]:
        at_hand = verdicts(run["events"], policy, through_json=False)
        assert at_hand == verdicts(run["events"], policy, through_json=True), run["id"]


leaves = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2)
states = st.recursive(
    leaves | st.lists(leaves, max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("vxyz"), inner, max_size=3),
)


class TestSparing:
    @given(st.dictionaries(st.sampled_from("vxyz"), states, max_size=4))
    def test_what_is_as_usual_needs_no_place(self, counts):
        kept = spared(counts, counts)
        assert filled(kept, counts) == counts
        assert set(kept) <= {"v"} | {key for key, value in counts.items() if "v" in str(value)}

    def test_what_differs_is_kept(self):
        empty = {"v": 1, "n": 0, "rules": {"a": [], "b": {"c": 0, "d": 0}}}
        counts = {"v": 1, "n": 0, "rules": {"a": [], "b": {"c": 2, "d": 0}}}
        kept = spared(counts, empty)
        assert kept == {"v": 1, "rules": {"b": {"c": 2}}}
        assert filled(kept, empty) == counts

    def test_counts_that_were_never_spared_are_left_as_they_are(self):
        reader = MessageReader(LoopGuard())
        whole = reader._whole_state()
        assert filled(whole, whole) == whole
        assert len(json.dumps(reader.to_state())) < 40
