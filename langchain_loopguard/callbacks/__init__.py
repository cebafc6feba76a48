"""How does a handler in `config["callbacks"]` stop an agent before a repeated tool call runs?

The public name is `LoopGuardCallbackHandler`. One file answers one question: `runs` to which
conversation an event belongs, `conversations` what is remembered of it, `reading` which batch it
is and what was before, `marks` what is left in the messages for the next process, `questions`
which of a batch's calls asks, `host` what LangGraph can be asked, `verdicts` what is done about
a loop, `refusal` how a call is refused, and `handler` what is done with each event.

A handler saves nothing itself. What a new process, or another handler, knows of a thread:

- *Every count*, at each tool call and model call inside a graph with messages: it reads the
  state's messages as the running task sees them (`host.Task.messages`).
- *What became of each earlier batch*: the answers say what a person let run, what was refused
  and how a run was to end; the model's next message says it of tools that don't exist (`marks`).
  These are written before the host saves the messages for the first time, so the decision is
  saved together with what came of it, or not at all.
- *What was asked about the batch that waits, and the answer*, if another call of the batch took
  it before the process died (`host.Task.asked`). An answer that no task took yet is LangGraph's
  to keep, and it gives it to the task that asked.

What it can't know, so that it asks again and never just runs the tool:

- who answered, where LangGraph shows a task nothing of the other tasks of its step; that is an
  internal of LangGraph's and looked for each time;
- the answer about a batch, where the call that took it has then asked a question of its own,
  and other calls of the batch have not run yet.

What it can't know, so that it counts less: in the functional API, which has no state, what came
before a resume in another process, until the next model call brings the messages.
"""

from __future__ import annotations

from langchain_loopguard.callbacks.handler import LoopGuardCallbackHandler

__all__ = ["LoopGuardCallbackHandler"]
