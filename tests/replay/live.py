"""A live run, and what of a replay a live guard would have emitted."""

from __future__ import annotations

import itertools

from langchain_loopguard import LoopGuardCallbackHandler
from langchain_loopguard.core.decision import Action
from tests.hosts import Counter, agent_graph, ask, counting_tool, listed_model, thread

SEARCH = ("search", {"q": "a"})
READ = ("read", {"q": "b"})

SCRIPTS = {
    "one call": [[SEARCH]] * 12,
    "two calls in a step": [[SEARCH, READ]] * 12,
    "a cycle": [[SEARCH], [READ]] * 8,
    "no loop": [[SEARCH], [READ], [("search", {"q": "c"})]],
}


def tools(answer="error: 503 service unavailable"):
    counter = Counter()
    return [counting_tool(counter, name, answer) for name in ("search", "read")]


def live_run(script, saver, *listeners, policy=None, name="t1", **options):
    """Run an agent under a handler that only warns; returns what it emitted."""
    emitted = []
    handler = LoopGuardCallbackHandler(policy, on_detected="warn", notify=emitted.append)
    graph = agent_graph(listed_model(*script), tools(), checkpointer=saver)
    config = thread(name, handler)
    config["callbacks"] = [*config["callbacks"], *listeners]
    graph.invoke(ask(), config, **options)
    return findings_of(emitted)


def findings_of(decisions):
    """Each decision's findings, as a live run emitted them."""
    return [
        (found.rule, found.action, found.count, found.since)
        for decision in decisions
        for found in decision.findings
    ]


def emitted_live(report):
    """The findings of a replay that a live handler emits.

    A loop that results show is emitted when its next step is about to run, and each loop once at
    a threshold.
    """
    found, known = [], set()
    for (_, before), group in itertools.groupby(
        report.findings, lambda one: (one.step, one.before)
    ):
        findings = list(group)
        first = findings[0]
        loop = (first.rule, first.tools, first.threshold)
        if loop not in known and (before or first.action is Action.WARN):
            known.add(loop)
            found += [(one.rule, one.action, one.count, one.since) for one in findings]
    return found
