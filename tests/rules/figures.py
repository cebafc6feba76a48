"""Which figures does the default guard reach on the open cases and the open corpus?

`python -m tests.rules.figures` prints them as a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from langchain_loopguard.core.answers import DIGITS, Answer
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.conversations import load, policy_for, read_through


@dataclass
class Figures:
    """What was measured; ids name conversations."""

    wrong_cases: dict[str, str]
    cases: int
    incident_warn: int | None
    incident_ask: int | None
    missed_loops: list[str]
    distances: dict[str, int]
    """Of each labelled loop that was asked about: batches from its first repeat to the ask."""
    loops: int
    asked_benign: list[str]
    benign: int
    asked_solved: list[str]
    warned_solved: list[str]
    solved: int

    @property
    def distance(self):
        return mean(self.distances.values())

    @property
    def warned_share(self):
        return len(self.warned_solved) / self.solved

    def rows(self):
        """The table: what, measured, goal."""
        return [
            (
                "labelled loops asked about",
                f"{self.loops - len(self.missed_loops)}/{self.loops}",
                "20/20",
            ),
            ("  batches from first repeat to ask, mean", f"{self.distance:.2f}", "<= 6"),
            ("labelled benign runs asked about", f"{len(self.asked_benign)}/{self.benign}", "0/19"),
            (
                "solved runs asked about",
                f"{len(self.asked_solved)}/{self.solved}",
                "1/366, which holds a loop",
            ),
            ("solved runs warned", f"{100 * self.warned_share:.2f} %", "<= 2 %"),
            (
                "open cases as expected",
                f"{self.cases - len(self.wrong_cases)}/{self.cases}",
                "61/61",
            ),
            ("the incident: first warning", f"call {self.incident_warn}", "<= 9"),
            ("the incident: first ask", f"call {self.incident_ask}", "<= 18"),
        ]


def measure(policy=None):  # noqa: C901 - one pass over all, told in order
    """Run every open case and the whole open corpus through one policy."""
    policy = policy or LoopGuardPolicy()
    wrong = {}
    incident = None
    cases = load("cases")
    for case in cases:
        verdict = read_through(case["events"], policy_for(case, policy))
        told = unexpected(case, verdict)
        if told:
            wrong[case["id"]] = told
        if case["id"] == "shape-incident":
            incident = verdict
    found = Figures(wrong, len(cases), incident.warn, incident.ask, [], {}, 0, [], 0, [], [], 0)
    for run in load("corpus"):
        verdict = read_through(run["events"], policy)
        label = run.get("label")
        if label == "loop":
            found.loops += 1
            if verdict.ask is None:
                found.missed_loops.append(run["id"])
            else:
                found.distances[run["id"]] = max(0, verdict.ask - first_repeat(run["events"]))
        elif label == "benign":
            found.benign += 1
            if verdict.ask is not None:
                found.asked_benign.append(run["id"])
        if run["outcome"] == "success":
            found.solved += 1
            if verdict.ask is not None:
                found.asked_solved.append(run["id"])
            if verdict.ask is not None or verdict.warn is not None:
                found.warned_solved.append(run["id"])
    return found


def first_repeat(events):
    """Number of the batch where a labelled run's loop first repeats.

    A batch is a repeat when all its calls ran before in the user turn with the same answers, when
    it is the batch before it once more whatever it answers, or when one of its tools fails with
    the error (without numbers) of that tool's last answer. The loop is the longest stretch of
    repeats with at most one other batch between two of them; its first batch is the first repeat.
    """
    repeats = []
    seen, last, last_error = set(), None, {}
    number = 0
    for event in events:
        if event["type"] == "human":
            seen, last, last_error = set(), None, {}
        if event["type"] != "batch":
            continue
        number += 1
        answers = {answer["id"]: answer for answer in event.get("results") or []}
        calls = []
        failed_again = False
        for call in event["calls"]:
            answer = answers.get(call["id"])
            name, text = call["name"], None
            if answer is not None:
                error = answer["status"] == "error"
                text = Answer(answer["content"], error=error).text
                if error:
                    text = mask_clock(text).translate(None, DIGITS)
                    failed_again = failed_again or last_error.get(name) == text
                    last_error[name] = text
                else:
                    last_error.pop(name, None)
            calls.append((name, repr(call["args"]), text))
        batch = sorted(call[:2] for call in calls)
        if failed_again or batch == last or all(call in seen for call in calls):
            repeats.append(number)
        seen.update(calls)
        last = batch
    stretches = []
    for repeat in repeats:
        if stretches and repeat - stretches[-1][-1] <= 2:
            stretches[-1].append(repeat)
        else:
            stretches.append([repeat])
    return max(stretches, key=len)[0]


def unexpected(case, verdict):
    """What a verdict got wrong of what a case expects, `""` if nothing."""
    expect = case["expect"]
    ask = verdict.ask
    if "ask_by" in expect and not (ask and ask <= expect["ask_by"]):
        return f"asked at {ask}, expected by {expect['ask_by']}"
    if ask and ask < expect.get("ask_not_before", 0):
        return f"asked at {ask}, not expected before {expect['ask_not_before']}"
    if expect.get("never_ask") and ask:
        return f"asked at {ask}, expected never"
    if expect.get("silent_after_human"):
        after = _batches_after_human(case["events"]) & set(verdict.asks)
        if after:
            return f"asked at {after} right after a user turn"
    return ""


def _batches_after_human(events):
    number, human, after = 0, False, set()
    for event in events:
        if event["type"] == "batch":
            number += 1
            if human:
                after.add(number)
        human = event["type"] == "human"
    return after


def table(figures):
    """The figures as text."""
    return "\n".join(
        f"{what:44}{measured:>12}   goal {goal}" for what, measured, goal in figures.rows()
    )


if __name__ == "__main__":
    print(table(measure()))  # noqa: T201 - prints the table
