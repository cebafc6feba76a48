"""Does each foreign rule fire where its system would, and nowhere else?"""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.presets import PRESETS, preset
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.autogpt import AutoGpt
from langchain_loopguard.core.rules.harnesses.cline import Cline
from langchain_loopguard.core.rules.harnesses.gemini_cli import GeminiCli
from langchain_loopguard.core.rules.harnesses.gglib import Gglib
from langchain_loopguard.core.rules.harnesses.hermes import Hermes
from langchain_loopguard.core.rules.harnesses.hermes_agent import HermesAgent
from langchain_loopguard.core.rules.harnesses.openclaw import OpenClaw
from langchain_loopguard.core.rules.harnesses.openhands import OpenHands
from langchain_loopguard.core.rules.harnesses.signal_a import SignalA
from langchain_loopguard.core.rules.harnesses.signal_b import SignalB
from langchain_loopguard.core.rules.harnesses.signal_c import SignalC
from langchain_loopguard.core.rules.harnesses.takt import Takt
from langchain_loopguard.demo.scripts import incident
from tests.core.odd import HOSTILE
from tests.core.plays import HUMAN, UNKNOWN, between, call, new, run, verdicts


def only(*rules):
    return LoopGuardPolicy(rules=rules, probation=False)


A, B, C, D = (call(cmd=letter) for letter in "abcd")
READ = call("read_file", path="a.py", say="text")
NEWS = new()
FAILS = [call(cmd="a", say=f"ERR {word} at", fails=True) for word in "vwxyzqrstu"]
"""The same call, failed with ever other errors."""
EVER_FAILS = [call(n=n, say=f"{n * 'x'} broke", fails=True) for n in range(40)]
"""Ever other calls of one tool, failed with ever other errors."""
SAME_ERROR = [call(n=n, say=f"line {n}: no match", fails=True) for n in range(40)]
"""Ever other calls of one tool, failed with one error but for its digits."""
MISSING = [
    call("nope", n=n, say="Error: nope is not a valid tool, try one of [bash].", fails=True)
    for n in range(40)
]
REFUSED = [call(n=n, say=f"{n} validation errors for bash", fails=True) for n in range(40)]


# --- The incident -----------------------------------------------------------------------------

COMMANDS = {"git status --short": "S", "git diff --stat": "T", "git diff src/app/main.py": "D"}


def tell(*, variants_print="", diffs=1):
    """Tell the incident: `variants_print` is added to what each variant of a command answers."""
    steps = []
    diffed = 0
    for place, scripted in enumerate(incident().calls):
        command, answer = scripted.command, scripted.answer
        letter = COMMANDS.get(command, "V")
        if letter == "V" and variants_print:
            answer += variants_print.format(place)
        if letter == "D":
            command += f" {diffed % diffs}"
            diffed += 1
        steps.append(call(command=command, say=answer))
    return steps


def first(policy, steps):
    """Give the place of the first verdict of each action and rule."""
    guard = LoopGuard(policy)
    found = {}
    for place, step in enumerate(steps):
        for _, decision in run(guard, step):
            for finding in decision.findings:
                found.setdefault((finding.rule, finding.action), place)
    return found


NEVER = (
    "seed hermes gglib opencode_v1 pr_37109 pr_46272 pr_47845 kimi_code deepseek_harness "
    "openhands cline roo_code crewai autogpt takt claude_code codex pi agentsight"
).split()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(name, expected, id=name)
        for name, expected in {
            **{name: {} for name in NEVER},
            "pr_32089": {("pr_32089", Action.ASK): 7},
            "pr_47797": {("pr_47797", Action.ASK): 39},
            "hermes_agent": {
                ("hermes_agent", Action.WARN): 39,
                ("hermes_agent", Action.STOP): 45,
            },
            "gemini_cli": {("gemini_cli", Action.WARN): 45, ("gemini_cli", Action.STOP): 46},
            "openclaw": {("openclaw", Action.WARN): 46},
            "signals": {
                ("signal_a", Action.WARN): 7,
                ("signal_a", Action.ASK): 21,
                ("signal_b", Action.WARN): 7,
                ("signal_b", Action.ASK): 12,
                ("signal_b", Action.STOP): 16,
            },
        }.items()
    ],
)
def test_the_incident_is_found_at_the_published_call(name, expected):
    assert first(LoopGuardPolicy.preset(name), tell()) == expected


def test_the_incident_table_names_every_preset():
    table = {*NEVER, "pr_32089", "pr_47797", "hermes_agent", "gemini_cli", "openclaw", "signals"}
    assert table == set(LoopGuardPolicy.preset_names())


def test_diffs_of_two_files_hide_the_incident_from_gemini():
    assert first(LoopGuardPolicy.preset("gemini_cli"), tell(diffs=2)) == {}


def test_diffs_of_two_files_move_signal_a_to_29():
    assert first(only(SignalA()), tell(diffs=2))[("signal_a", Action.ASK)] == 29


def test_variants_that_print_a_new_line_move_signal_b_to_38():
    found = first(only(SignalB()), tell(variants_print="variant {}\n"))
    assert found[("signal_b", Action.ASK)] == 38


# --- Each rule at its numbers -----------------------------------------------------------------

SIGNALS_B_FROM_ONE = [
    "3! warn 3/3", "5! warn 5/5", "8! ask 8/8", "9? ask 8/8", "9! ask 9/8", "10? ask 9/8",
    "10! ask 10/8", "11? ask 10/8", "11! ask 11/8", "12? ask 11/8", "12! stop 12/12",
    "13? stop 12/12", "13! stop 13/12",
]  # fmt: skip

CASES = {
    "seed": (preset("seed").rules, [A] * 3, ["2? ask 3/2"]),
    "gglib notes the third": ((Gglib(),), [A] * 4, ["2? warn 3/3", "3? warn 4/3"]),
    "gglib lets two run": ((Gglib(),), [A, A, B, A, A], []),
    "gglib refuses if told": ((Gglib(on_loop="refuse"),), [A] * 3, ["2? ask 3/3"]),
    "gglib reads on": ((Gglib(),), [READ] * 15, []),
    "gglib reads not for ever": ((Gglib(),), [READ] * 16, ["15? warn 16/16"]),
    "opencode v1": (preset("opencode_v1").rules, [[A, A, A]], ["0? ask 3/3"]),
    "opencode v1 goes on": (preset("opencode_v1").rules, [[A, A, A, A]], ["0? ask 4/3"]),
    "opencode v1 in the middle": (preset("opencode_v1").rules, [[B, A, A, A, B]], ["0? ask 3/3"]),
    "opencode v1 two": (preset("opencode_v1").rules, [[A, A], [A, A]], []),
    "opencode v1 broken": (preset("opencode_v1").rules, [[A, A, B, A]], []),
    "opencode v1 other messages": (preset("opencode_v1").rules, [A] * 9, []),
    "opencode v1 key order": (
        preset("opencode_v1").rules, [[call(a=1, b=2), call(b=2, a=1), call(a=1, b=2)]], [],
    ),
    "signal A": (
        (SignalA(),), [A] * 7,
        ["2! warn 3/3", "5! ask 6/6", "6? ask 6/6", "6! ask 7/6"],
    ),
    "signal A any distance": (
        (SignalA(),), between([A] * 4, NEWS),
        ["4! warn 3/3"],
    ),
    "signal A changed answer": (
        (SignalA(),), [A, A, call(cmd="a", say="no"), A, A], [],
    ),
    "signal A unknown answer": (
        (SignalA(),), [A, A, call(cmd="a", say=UNKNOWN), A], ["3! warn 3/3"],
    ),
    "signal A within a batch": ((SignalA(),), [[A, A, A]], ["0! warn 3/3"]),
    "signal A reads in order": (
        (SignalA(),), [call(a=1, b=2), call(b=2, a=1), call(a=1, b=2)], ["2! warn 3/3"],
    ),
    "signal B": ((SignalB(),), [A] * 14, SIGNALS_B_FROM_ONE),
    "signal B news": ((SignalB(),), [A, A, A, NEWS[0], A, A], []),
    "signal B half news": (
        (SignalB(),), [A, A, A, call(say="ok\nnot seen"), A, A, A], ["6! warn 3/3"],
    ),
    "signal B decoration": (
        (SignalB(),), [A, A, call(say="---\nok\n\n===\n"), A], ["3! warn 3/3"],
    ),
    "signal B long answers": (
        (SignalB(),), [call(say="\n".join(f"line {n}" for n in range(50)))] * 4, ["3! warn 3/3"],
    ),
    "signal B empty": ((SignalB(),), [call(n=n, say="") for n in range(3)], ["2! warn 3/3"]),
    "signal B unknown": (
        (SignalB(),), [A, A, call(say=UNKNOWN), A, A], ["4! warn 3/3"],
    ),
    "signal C": (
        (SignalC(),), SAME_ERROR[:8],
        ["3! warn 4/4", "5! ask 6/6", "6? ask 6/6", "6! ask 7/6", "7? ask 7/6", "7! ask 8/6"],
    ),
    "signal C others between": (
        (SignalC(),), between(SAME_ERROR[:4], [READ] * 4), ["6! warn 4/4"],
    ),
    "signal C asks about its tool": (
        (SignalC(),), [*SAME_ERROR[:6], READ, A], ["3! warn 4/4", "5! ask 6/6", "7? ask 6/6"],
    ),
    "signal C success": ((SignalC(),), [*SAME_ERROR[:3], A, *SAME_ERROR[:3]], []),
    "signal C other tool's success": (
        (SignalC(),), [*SAME_ERROR[:3], READ, SAME_ERROR[3]], ["4! warn 4/4"],
    ),
    "signal C other errors": ((SignalC(),), EVER_FAILS[:20], []),
    "signal C unknown": ((SignalC(),), [call(n=n, say=UNKNOWN) for n in range(9)], []),
    "kimi": (
        preset("kimi_code").rules, [A] * 13,
        ["2? warn 3/3", "4? warn 5/5", "7? warn 8/8", "11? stop 12/12", "12? stop 13/12"],
    ),
    "kimi rotation": (preset("kimi_code").rules, [A, B] * 40, []),
    "kimi within a batch": (preset("kimi_code").rules, [[A] * 6], ["0? warn 5/5"]),
    "deepseek": (
        preset("deepseek_harness").rules, [A] * 9,
        ["2? warn 3/3", "4? warn 5/5", "7? ask 8/8", "8? ask 9/8"],
    ),
    "deepseek rotation": (preset("deepseek_harness").rules, [A, A, B] * 40, []),
    "cline": (
        preset("cline").rules, [A] * 6, ["2? warn 3/3", "4? stop 5/5", "5? stop 6/5"],
    ),
    "cline broken": (preset("cline").rules, [A, A, B] * 20, []),
    "roo": (preset("roo_code").rules, [A] * 8, ["3? ask 4/4", "7? ask 4/4"]),
    "roo three": (preset("roo_code").rules, [A, A, A, B] * 9, []),
    "crewai": (preset("crewai").rules, [A] * 3, ["1? ask 2/2", "2? ask 3/2"]),
    "crewai names": (
        preset("crewai").rules, [call("Do It!", a=1), call("do_it", a=1)], ["1? ask 2/2"],
    ),
    "crewai other": (preset("crewai").rules, [A, B] * 9, []),
    "#46272": (preset("pr_46272").rules, [A] * 11, ["9? stop 10/10", "10? stop 11/10"]),
    "#46272 nine": (preset("pr_46272").rules, [*[A] * 9, B] * 3, []),
    "#32089": (preset("pr_32089").rules, between([A] * 4, NEWS), ["4? ask 3/3", "6? ask 4/3"]),
    "#32089 two": (preset("pr_32089").rules, [A, A, B, B], []),
    "#47797 one": (preset("pr_47797").rules, [A] * 4, ["2? ask 3/3", "3? ask 4/3"]),
    "#47797 ten": (
        preset("pr_47797").rules, [call(n=n) for n in range(10)] * 3 + [call(n=0)],
        ["29? ask 3/3", "30? ask 3/3"],
    ),
    "#47797 eleven": (preset("pr_47797").rules, [call(n=n) for n in range(11)] * 6, []),
    "#47845": (preset("pr_47845").rules, [[A, B] * 3, [A, B]], ["0? ask 3/3"]),
    "#47845 one": (preset("pr_47845").rules, [[A, A, A]], ["0? ask 3/3"]),
    "#47845 in the middle": (preset("pr_47845").rules, [[C, *[A, B] * 3, D]], ["0? ask 3/3"]),
    "#47845 long": (preset("pr_47845").rules, [[call(n=n) for n in range(20)] * 3], ["0? ask 3/3"]),
    "#47845 two laps": (preset("pr_47845").rules, [[A, B] * 2, [A, B] * 2], []),
    "#47845 reads 60": (preset("pr_47845").rules, [[*NEWS[:58], A, A, A]], []),
    "#37109": (
        preset("pr_37109").rules, [A, B, C, READ, D],
        ["2! ask 3/3", "4? ask 3/3", "4! ask 4/3"],
    ),
    "#37109 other output": (preset("pr_37109").rules, [A, B, NEWS[0]] * 3, []),
    "#37109 no terminal": (preset("pr_37109").rules, [READ] * 9, []),
    "#37109 unknown": (preset("pr_37109").rules, [A, B, call(say=UNKNOWN)], []),
    "gemini one": (preset("gemini_cli").rules, [A] * 6, ["4? warn 5/5", "5? stop 6/5"]),
    "gemini five": (
        preset("gemini_cli").rules, [call(n=n) for n in range(5)] * 5, ["24? warn 5/5"],
    ),
    "gemini six": (preset("gemini_cli").rules, [call(n=n) for n in range(6)] * 9, []),
    "gemini second cycle": (
        preset("gemini_cli").rules, [*[A] * 5, B, *[C] * 5], ["4? warn 5/5", "10? stop 5/5"],
    ),
    "gemini key order": (
        preset("gemini_cli").rules, [call(a=1, b=2), call(a=1, b=2), call(b=2, a=1)] * 4, [],
    ),
    "openclaw": (
        preset("openclaw").rules, [A] * 32,
        [
            *(f"{n}? warn {n}/10" for n in range(10, 20)),
            *(f"{n}? ask {n}/20" for n in range(20, 30)),
            "30? stop 30/30", "31? stop 30/30",
        ],
    ),
    "openclaw new answers": (
        preset("openclaw").rules, [call(cmd="a", say=str(n)) for n in range(32)],
        [f"{n}? warn {min(n, 30)}/10" for n in range(10, 32)],
    ),
    "openclaw two answers": (
        preset("openclaw").rules, [call(cmd="a", say="xy"[n % 2]) for n in range(25)],
        [f"{n}? warn {n}/10" for n in range(10, 25)],
    ),
    "openclaw unknown answers": (
        preset("openclaw").rules, [call(cmd="a", say=UNKNOWN)] * 31,
        [f"{n}? warn {n}/10" for n in range(10, 31)],
    ),
    "openclaw others between": (
        preset("openclaw").rules, between([A] * 15, NEWS),
        [f"{n}? warn 10/10" for n in range(20, 21)]
        + [f"{n}? warn {n // 2}/10" for n in range(22, 30, 2)],
    ),
    "openclaw in turn": (
        preset("openclaw").rules, [A, B] * 10,
        [*(f"{n}? warn {n + 1}/10" for n in range(9, 19)), "19? ask 20/20"],
    ),
    "openclaw in turn, another answer before": (
        preset("openclaw").rules, [call(cmd="a", say="no"), *[A, B] * 10],
        [*(f"{n}? warn {n}/10" for n in range(10, 20)), "20? ask 20/20"],
    ),
    "openclaw in turn, another answer first": (
        preset("openclaw").rules, [call(cmd="a", say="no"), B, *[A, B] * 9],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw in turn, new answers": (
        preset("openclaw").rules,
        [call(cmd="ab"[n % 2], say=str(n)) for n in range(20)],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw in turn, unknown answers": (
        preset("openclaw").rules,
        [call(cmd="ab"[n % 2], say=UNKNOWN) for n in range(20)],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw missing tool": (
        preset("openclaw").rules, MISSING[:12], ["10? ask 10/10", "11? ask 11/10"],
    ),
    "openclaw missing tool broken": (
        preset("openclaw").rules, [*MISSING[:9], A, *MISSING[10:19]], [],
    ),
    "openclaw big batch": (
        (OpenClaw(window=2),), [[A, B, C]], [],
    ),
    "autogpt": (
        preset("autogpt").rules, between(FAILS[:5], [READ] * 5), ["6? ask 3/3", "8? ask 4/3"],
    ),
    "autogpt success of the tool": (preset("autogpt").rules, [*FAILS[:2], B, *FAILS[:3]], []),
    "autogpt other arguments": (preset("autogpt").rules, EVER_FAILS[:9], []),
    "autogpt unknown": (preset("autogpt").rules, [call(cmd="a", say=UNKNOWN)] * 9, []),
    "autogpt empty": (
        preset("autogpt").rules, [[call("t"), A]] * 6, ["4? stop 5/5", "5? stop 6/5"],
    ),
    "autogpt empty broken": (preset("autogpt").rules, [*[call("t")] * 4, A] * 3, []),
    "openhands pairs": (
        preset("openhands").rules, [A] * 5, ["3! stop 4/4", "4? stop 4/4", "4! stop 5/4"],
    ),
    "openhands three pairs": (preset("openhands").rules, [A, A, A, B] * 5, []),
    "openhands failures": (
        preset("openhands").rules, FAILS[:3], ["2! stop 3/3"],
    ),
    "openhands two failures": (preset("openhands").rules, [*FAILS[:2], A, *FAILS[2:4], B], []),
    "openhands in turn": (preset("openhands").rules, [A, B] * 3, ["5! stop 3/3"]),
    "openhands in turn goes on": (
        preset("openhands").rules, [A, B] * 4,
        ["5! stop 3/3", "6? stop 3/3", "6! stop 3/3", "7? stop 3/3", "7! stop 3/3"],
    ),
    "openhands in turn, other answer": (
        preset("openhands").rules, [A, B, A, B, call(cmd="a", say="no"), B], [],
    ),
    "openhands three in turn": (preset("openhands").rules, [A, B, C] * 9, []),
    "openhands unknown": (preset("openhands").rules, [A, A, A, call(say=UNKNOWN), A, A, A], []),
    "hermes-agent call failures": (
        preset("hermes_agent").rules, FAILS[:8],
        [
            "1! warn 2/2", "2! warn 3/2", "3! warn 4/2", "4! warn 5/2", "5? ask 5/5",
            "5! warn 6/2", "6? ask 6/5", "6! warn 7/2", "7? ask 7/5", "7! stop 8/8",
        ],
    ),
    "hermes-agent tool failures": (
        preset("hermes_agent").rules, EVER_FAILS[:9],
        [*(f"{n}! warn {n + 1}/3" for n in range(2, 7)), "7! stop 8/8", "8? stop 8/8",
         "8! stop 9/8"],
    ),
    "hermes-agent changing success": (
        preset("hermes_agent").rules, [*EVER_FAILS[:2], call("write", n=0), *EVER_FAILS[2:4]], [],
    ),
    "hermes-agent success of the reader": (
        preset("hermes_agent").rules,
        [*(call("read_file", n=n, say=f"{n * 'y'} no", fails=True) for n in range(2)), READ,
         *(call("read_file", n=n, say=f"{n * 'z'} no", fails=True) for n in (5, 6))],
        [],
    ),
    "hermes-agent other reader's success": (
        preset("hermes_agent").rules, [*EVER_FAILS[:2], READ, EVER_FAILS[2]], ["3! warn 3/3"],
    ),
    "hermes-agent same answer": (
        preset("hermes_agent").rules, between([READ] * 6, NEWS),
        ["2! warn 2/2", "4! warn 3/2", "6! warn 4/2", "8! warn 5/2", "10? ask 5/5",
         "10! warn 6/2"],
    ),
    "hermes-agent other answer": (
        preset("hermes_agent").rules, [READ, call("read_file", path="a.py", say="more")] * 2, [],
    ),
    "hermes-agent streak": (
        preset("hermes_agent").rules, [A] * 6,
        ["2! warn 3/3", "3! warn 4/3", "4! stop 5/5", "5? stop 5/5", "5! stop 6/5"],
    ),
    "hermes-agent cycle of four": (
        preset("hermes_agent").rules, [A, B, C, D] * 5,
        [*(f"{n}! warn 3/3" for n in range(11, 15)), *(f"{n}! warn 4/3" for n in range(15, 19)),
         "19! stop 5/5"],
    ),
    "hermes-agent cycle of five": (
        preset("hermes_agent").rules, [call(n=n) for n in range(5)] * 9, [],
    ),
    "hermes-agent unknown": (
        preset("hermes_agent").rules, [A, A, call(say=UNKNOWN), A, A], [],
    ),
    "hermes-agent only tells": (
        (HermesAgent(hard_stop=False),), [A] * 6, [f"{n}! warn {n + 1}/3" for n in range(2, 6)],
    ),
    "hermes-agent only tells of failures": (
        (HermesAgent(hard_stop=False),), FAILS[:9],
        [f"{n}! warn {n + 1}/2" for n in range(1, 9)],
    ),
    "hermes-agent stops before it tells": (
        (HermesAgent(laps_note=5, laps_stop=3),), [A] * 3, ["2! stop 3/3"],
    ),
    "hermes calls": (
        LoopGuardPolicy.hermes().rules, FAILS[:7],
        [f"{n}! warn {n + 1}/2" for n in range(1, 7)],
    ),
    "hermes calls, hard": (
        LoopGuardPolicy.hermes(hard_stop=True).rules, FAILS[:6],
        [*(f"{n}! warn {n + 1}/2" for n in range(1, 5)), "5? ask 5/5", "5! warn 6/2"],
    ),
    "hermes tool": (
        LoopGuardPolicy.hermes().rules, EVER_FAILS[:10],
        [f"{n}! warn {n + 1}/3" for n in range(2, 10)],
    ),
    "hermes tool, hard": (
        LoopGuardPolicy.hermes(hard_stop=True).rules, EVER_FAILS[:9],
        [*(f"{n}! warn {n + 1}/3" for n in range(2, 8)), "8? stop 8/8", "8! warn 9/3"],
    ),
    "hermes reads": (
        LoopGuardPolicy.hermes().rules, between([READ] * 7, NEWS),
        [f"{n}! warn {n // 2 + 1}/3" for n in range(4, 14, 2)],
    ),
    "hermes reads, hard": (
        LoopGuardPolicy.hermes(hard_stop=True).rules, [READ] * 7,
        ["2! warn 3/3", "3! warn 4/3", "4! warn 5/3", "5! ask 6/6", "6? ask 6/6", "6! ask 7/6"],
    ),
    "hermes other answer": (
        LoopGuardPolicy.hermes().rules, [READ, READ, call("read_file", path="a.py", say="b")] * 5,
        [],
    ),
    "hermes other tools": (LoopGuardPolicy.hermes(hard_stop=True).rules, [A] * 20, []),
    "hermes unknown": (
        LoopGuardPolicy.hermes().rules, [call("read_file", say=UNKNOWN)] * 9, [],
    ),
    "hermes success clears nothing": (
        LoopGuardPolicy.hermes().rules, [FAILS[0], A, FAILS[1]], ["2! warn 2/2"],
    ),
    "hermes without warnings": (
        (LoopGuardPolicy.hermes().rules[0].model_copy(update={"warnings_enabled": False}),),
        [*FAILS, *[READ] * 9], [],
    ),
    "takt equal tuples": (
        preset("takt").rules, [A] * 37,
        ["11! warn 12/12", "23! ask 12/12", "24? ask 12/12", "35! stop 12/12", "36? stop 12/12"],
    ),
    "takt no restart left": (
        (Takt(restarts=0),), [A] * 25, ["11! warn 12/12", "23! stop 12/12", "24? stop 12/12"],
    ),
    "takt eleven": (preset("takt").rules, [*[A] * 11, B] * 5, []),
    "takt other result": (preset("takt").rules, [call(cmd="a", say=str(n)) for n in range(60)], []),
    "takt missing tools": (preset("takt").rules, MISSING[:2], ["1! warn 2/2"]),
    "takt missing tools after another error": (
        preset("takt").rules, [EVER_FAILS[0], *MISSING[:2]], ["2! warn 2/2"],
    ),
    "takt two restarts": (
        (Takt(restarts=2),), MISSING[:8], ["1! warn 2/2", "3! ask 2/2", "4? ask 2/2",
                                           "5! ask 2/2", "6? ask 2/2", "7! stop 2/2"],
    ),
    "takt share of few": ((Takt(recent_percent=5),), [A, EVER_FAILS[0], B], []),
    "takt share of a hundred": (
        (Takt(failures=999, recent=100, recent_percent=100),),
        [call(n=n, say=f"{n * 'x'} broke", fails=True) for n in range(100)],
        ["99! warn 100/100"],
    ),
    "takt one missing tool": (preset("takt").rules, [MISSING[0], EVER_FAILS[0], MISSING[1]], []),
    "takt missing tools of two": (
        preset("takt").rules, [*MISSING[:2], *(c | {"name": "nix"} for c in MISSING[2:4])],
        ["1! warn 2/2", "3! warn 2/2"],
    ),
    "takt bad arguments": (preset("takt").rules, REFUSED[:4], ["3! warn 4/4"]),
    "takt bad arguments of two": (
        preset("takt").rules, [*REFUSED[:3], call("cat", say="schema error", fails=True)], [],
    ),
    "takt bad arguments, other error": (
        preset("takt").rules, [*REFUSED[:3], EVER_FAILS[0], *REFUSED[3:6]], [],
    ),
    "takt edits": (
        preset("takt").rules,
        between([call("edit", old="x", say="no match", fails=True)] * 3, EVER_FAILS),
        ["4! warn 3/3"],
    ),
    "takt edits, success": (
        preset("takt").rules, [*[call("edit", old="x", say="no", fails=True)] * 2, A] * 2, [],
    ),
    "takt other tool is no edit": (preset("takt").rules, FAILS[:9], []),
    "takt failures": (preset("takt").rules, EVER_FAILS[:10], ["9! warn 10/10"]),
    "takt nine failures": (preset("takt").rules, [*EVER_FAILS[:9], A], []),
    "takt share": (
        preset("takt").rules, [*EVER_FAILS[:9], A, *EVER_FAILS[10:19], B, C, EVER_FAILS[20]], [],
    ),
    "takt share of 18": (
        preset("takt").rules, [A, *EVER_FAILS[:9], B, *EVER_FAILS[10:19]], ["19! warn 18/18"],
    ),
    "takt steps": (
        preset("takt").rules, [call(n=n, say=UNKNOWN) for n in range(121)], ["119! warn 120/120"],
    ),
    "takt steps, success": (
        preset("takt").rules,
        [*[call(say=UNKNOWN)] * 119, A, call(say=UNKNOWN)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "steps", "expected"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_a_rule_fires_at_its_numbers(rules, steps, expected):
    assert verdicts(only(*rules), steps) == expected


@pytest.mark.parametrize(
    ("rules", "steps", "expected"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_a_stored_state_gives_the_same_verdicts(rules, steps, expected):
    assert verdicts(only(*rules), steps, reload=True) == expected


@pytest.mark.parametrize("name", ["claude_code", "codex", "pi", "agentsight"])
def test_a_system_without_a_detector_finds_nothing(name):
    assert verdicts(LoopGuardPolicy.preset(name), [[A] * 9] * 40) == []


# --- A user message ---------------------------------------------------------------------------

ONE_SHORT = {
    "seed": ([A, A], A, False),
    "gglib": ([A, A], A, False),
    "signal_a": ([A, A], A, True),
    "signal_b": ([A, A, A], A, False),
    "signal_c": (SAME_ERROR[:3], SAME_ERROR[3], True),
    "kimi_code": ([A, A], A, False),
    "deepseek_harness": ([A, A], A, False),
    "gemini_cli": ([A] * 4, A, False),
    "openclaw": ([A] * 10, A, False),
    "cline": ([A, A], A, True),
    "roo_code": ([A, A, A], A, True),
    "crewai": ([A], A, False),
    "autogpt": (FAILS[:3], FAILS[3], True),
    "takt": ([A] * 11, A, False),
    "hermes_agent": ([A, A], A, False),
    "hermes": (FAILS[:1], FAILS[1], False),
    "openhands": ([A, A, A], A, False),
    "pr_32089": ([A, A], A, True),
    "pr_47797": ([A, A], A, False),
    "pr_46272": ([A] * 9, A, False),
    "pr_37109": ([A, A], A, True),
}


def policy_of(name):
    single = {"signal_a": SignalA(), "signal_b": SignalB(), "signal_c": SignalC()}
    return only(single[name]) if name in single else LoopGuardPolicy.preset(name)


@pytest.mark.parametrize(
    ("name", "before", "last", "survives"),
    [pytest.param(name, *case, id=name) for name, case in ONE_SHORT.items()],
)
def test_a_user_message_resets_what_it_resets_there(name, before, last, survives):
    policy = policy_of(name)
    assert verdicts(policy, before) == []
    assert verdicts(policy, [*before, last]) != []
    assert bool(verdicts(policy, [*before, HUMAN, last])) is survives


def test_a_user_message_lifts_a_stop_about_answers():
    assert verdicts(LoopGuardPolicy.preset("openhands"), [*[A] * 4, HUMAN, A]) == ["3! stop 4/4"]


def test_a_user_message_makes_old_lines_news():
    assert verdicts(only(SignalB()), [A, HUMAN, A, B, C]) == []


def test_a_user_message_gives_takt_all_its_chances_back():
    steps = [*[A] * 12, HUMAN, *[A] * 12]
    assert verdicts(LoopGuardPolicy.preset("takt"), steps) == ["11! warn 12/12", "23! warn 12/12"]


def test_a_held_ask_of_signal_c_outlives_a_user_message():
    steps = [*SAME_ERROR[:6], HUMAN, A]
    assert verdicts(only(SignalC()), steps)[-1] == "6? ask 6/6"


# --- Going on, and refusals -------------------------------------------------------------------

FIRES = {
    name: (policy_of(name), [*before, *[last] * 30])
    for name, (before, last, _) in ONE_SHORT.items()
    if name not in {"gglib", "hermes"}
} | {
    "gglib": (only(Gglib(on_loop="refuse")), [A] * 9),
    "autogpt empty": (policy_of("autogpt"), [call("t")] * 30),
    "autogpt failure": (policy_of("autogpt"), [*FAILS, *FAILS]),
    "hermes call": (LoopGuardPolicy.hermes(hard_stop=True), FAILS * 3),
    "hermes tool": (LoopGuardPolicy.hermes(hard_stop=True), EVER_FAILS),
    "hermes answer": (LoopGuardPolicy.hermes(hard_stop=True), [READ] * 20),
    "opencode_v1": (policy_of("opencode_v1"), [[A] * 3] * 9),
    "pr_47845": (policy_of("pr_47845"), [[A] * 3] * 9),
}


@pytest.mark.parametrize(
    ("policy", "steps"), [pytest.param(*case, id=name) for name, case in FIRES.items()]
)
def test_going_on_arms_the_rule_again(policy, steps):
    guard = LoopGuard(policy)
    played = iter(steps)
    for step in played:
        decisions = [decision for _, decision in run(guard, step)]
        asked = [decision for decision in decisions if decision.action >= Action.ASK]
        if asked:
            break
    for decision in asked:
        guard.approve(decision)
    if policy.rules[0].rule in {"opencode_v1", "pr_47845"}:
        return  # what is found within one message is found in the next one again
    [(_, before), (_, _)] = run(guard, next(played))
    assert before.action < Action.ASK


@pytest.mark.parametrize(
    ("name", "asks"),
    [("pr_32089", 2), ("deepseek_harness", 7), ("pr_47797", 2)],
)
def test_three_refusals_of_one_loop_end_the_run(name, asks):
    guard = LoopGuard(LoopGuardPolicy.preset(name))
    for _ in range(asks):
        assert run(guard, A)[0][1].action < Action.ASK
    for _ in range(3):
        decision = guard.check([{"name": "bash", "args": {"cmd": "a"}, "id": "x"}])
        assert decision.action is Action.ASK
        guard.refuse(decision)
    assert guard.check([{"name": "bash", "args": {"cmd": "a"}}]).action is Action.STOP


def test_the_batch_after_a_refused_one_has_a_chance_under_signal_b():
    guard = LoopGuard(only(SignalB()))
    for _ in range(9):
        run(guard, A)
    guard.refuse(guard.check([{"name": "bash", "args": {"cmd": "a"}, "id": "x"}]))
    assert guard.check([{"name": "bash", "args": {"cmd": "z"}, "id": "x"}]).action is Action.ALLOW


def test_forgetting_one_call_keeps_the_counts_of_another():
    guard = LoopGuard(only(SignalA()))
    for step in [A, B] * 6:
        decisions = run(guard, step)
    guard.approve(decisions[1][1])  # of B
    assert [run(guard, step)[0][1].action for step in (A, B)] == [Action.ASK, Action.ALLOW]


# --- Wordings ---------------------------------------------------------------------------------


def findings():
    for rules, steps, _ in CASES.values():
        guard = LoopGuard(only(*rules))
        for step in steps:
            for _, decision in run(guard, step):
                yield from decision.findings


def test_every_finding_tells_a_person_tools_count_and_number():
    for finding in findings():
        text = finding.to_person
        assert str(finding.count) in text, finding
        assert finding.rule == "repeated_batch" or f" at {finding.threshold})" in text
        assert all(tool in text for tool in finding.tools)


def test_no_finding_quotes_a_call_or_a_rule_to_the_model():
    for finding in findings():
        words = finding.to_model.lower()
        assert len(words) > 40
        assert not [word for word in ("bash", "read_file", "signal", "guard") if word in words]


def test_only_what_is_held_back_is_said_not_to_have_run():
    guard = LoopGuard(only(SignalA()))
    for _ in range(6):
        [(_, _), (_, after)] = run(guard, A)
    [(_, before), (_, _)] = run(guard, A)
    assert not after.to_model.startswith("This step was not run.")
    assert before.to_model.startswith("This step was not run.")


def test_a_finding_says_since_which_batch():
    guard = LoopGuard(LoopGuardPolicy.preset("gemini_cli"))
    for step in [C, *[A, B] * 4, A]:
        run(guard, step)
    [(_, decision), _] = run(guard, B)
    assert (decision.findings[0].since, decision.findings[0].count) == (2, 5)


@pytest.mark.parametrize(
    ("name", "steps", "since"),
    [
        ("kimi_code", [B, A, A, A], 2),
        ("pr_32089", [B, A, B, A, A], 2),
        ("pr_37109", [NEWS[0], A, A, A], 2),
        ("signals", [NEWS[0], A, NEWS[1], A, NEWS[2], A], 2),
        ("openclaw", [B, *between([A] * 11, NEWS)], 2),
        ("openclaw", [B, *between([A] * 21, NEWS)][:32], 2),
        ("openclaw", [B, *[A] * 21], 2),
        ("openclaw", [C, *[A, B] * 5], 2),
        ("openclaw", [C, *MISSING[:11]], 2),
        ("openhands", [B, A, A, A, A], 2),
        ("openhands", [C, *[A, B] * 3], 2),
        ("autogpt", [B, *FAILS[:4]], 2),
        ("autogpt", [A, *[call("t")] * 5], 2),
        ("hermes", [A, *EVER_FAILS[:3]], 2),
        ("hermes", [A, *FAILS[:2]], 2),
        ("hermes", [A, READ, NEWS[0], READ, READ], 2),
        ("hermes_agent", [A, *FAILS[:6]], 2),
        ("hermes_agent", [A, *between([READ] * 6, NEWS)][:12], 2),
        ("hermes_agent", [READ, *EVER_FAILS[:3]], 2),
        ("hermes_agent", [READ, NEWS[0], READ], 1),
        ("takt", [B, *[A] * 12], 2),
        ("takt", [B, *MISSING[:2]], 2),
        ("takt", [A, *(call(n=n, say=UNKNOWN) for n in range(120))], 2),
    ],
)
def test_a_loop_begins_at_its_first_batch(name, steps, since):
    guard = LoopGuard(LoopGuardPolicy.preset(name))
    found = [f for step in steps for _, decision in run(guard, step) for f in decision.findings]
    assert found[-1].since == since


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([A, *FAILS[:5], FAILS[5]], id="failures"),
        pytest.param([A, *between([READ] * 5, NEWS), READ], id="answers"),
    ],
)
def test_what_is_held_back_began_at_its_first_batch(steps):
    guard = LoopGuard(LoopGuardPolicy.preset("hermes_agent"))
    for step in steps:
        [(_, decision), _] = run(guard, step)
    assert (decision.action, decision.findings[0].since) == (Action.ASK, 2)


@pytest.mark.parametrize(
    ("steps", "words"), [([A], "times in a row with the same"), ([A, B], "went through the same")]
)
def test_a_person_is_told_a_streak_from_a_cycle(steps, words):
    guard = LoopGuard(LoopGuardPolicy.preset("gemini_cli"))
    for step in steps * 5:
        [(_, decision), _] = run(guard, step)
    assert words in decision.to_person


def test_a_short_cycle_in_a_long_tail_begins_at_its_first_batch():
    guard = LoopGuard(only(OpenHands(equal_pairs=20, alternations=2)))
    for step in [C, D, A, B, A, B]:
        [_, (_, decision)] = run(guard, step)
    assert decision.findings[0].since == 3


def test_the_tools_of_a_cycle_are_all_named():
    guard = LoopGuard(LoopGuardPolicy.preset("pr_47797"))
    for step in [call("one"), call("two")] * 3:
        [(_, decision), _] = run(guard, step)
    assert decision.findings[0].tools == ("one", "two")


# --- State ------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.just(HUMAN),
        st.builds(
            call,
            st.sampled_from(["bash", "read_file", "edit"]),
            say=st.sampled_from(["a", "b\nc", "", "x is not a valid tool", UNKNOWN]),
            fails=st.booleans(),
            n=st.integers(0, 2),
        ),
        st.lists(st.builds(call, n=st.integers(0, 1)), max_size=4),
    ),
    max_size=40,
)


@pytest.mark.parametrize("name", [*PRESETS, "hermes hard"])
@given(steps=STEPS)
@settings(max_examples=15, deadline=None)
def test_storing_the_state_at_every_step_changes_no_verdict(name, steps):
    hard = name == "hermes hard"
    policy = LoopGuardPolicy.hermes(hard_stop=True) if hard else LoopGuardPolicy.preset(name)
    assert verdicts(policy, steps, reload=True) == verdicts(policy, steps)


@pytest.mark.parametrize("name", [*PRESETS, "hermes hard"])
def test_the_state_stays_small_after_ten_thousand_calls(name):
    hard = name == "hermes hard"
    guard = LoopGuard(
        LoopGuardPolicy.hermes(hard_stop=True) if hard else LoopGuardPolicy.preset(name)
    )
    guard._batches = 90_000
    tools = ["read_file", "bash", "é" * 400, "edit", "run" * 90]
    for step in range(2_000):
        run(
            guard,
            [
                call(
                    tool,
                    n=step,
                    say=f"{step}\n{'x' * (step % 700)}{place}",
                    fails=(step // 40 + place) % 2 == 0,
                )
                for place, tool in enumerate(tools)
            ],
        )
        if step == 1_000:  # a tool of a new name at every call, too
            tools = tools[:4]
        if step > 1_000:
            tools[3] = f"{step}{'tool' * 30}"
    state = guard.to_state()
    assert len(json.dumps(state["rules"])) <= 6_000  # the guard itself needs room too
    assert len(json.dumps(state)) <= 8_192


@pytest.mark.parametrize("name", [name for name, system in PRESETS.items() if system.rules])
def test_a_state_of_another_form_is_an_error(name):
    policy = LoopGuardPolicy.preset(name)
    state = LoopGuard(policy).to_state()
    state["rules"] = {rule: ["x", {"y": 1}] for rule in state["rules"]}
    with pytest.raises(ValueError, match="state"):
        LoopGuard.from_state(policy, state)


def test_lines_of_another_width_are_an_error():
    policy = only(SignalB())
    state = LoopGuard(policy).to_state()
    state["rules"]["signal_b"][1][2] = "AAA="
    with pytest.raises(ValueError, match="32-bit"):
        LoopGuard.from_state(policy, state)


def test_rows_of_another_width_are_an_error():
    policy = only(SignalA())
    state = LoopGuard(policy).to_state()
    state["rules"]["signal_a"][1] = "AAA="
    with pytest.raises(ValueError, match="has 4 numbers"):
        LoopGuard.from_state(policy, state)


@pytest.mark.parametrize(
    ("rules", "gap", "found"),
    [
        pytest.param((SignalA(note_at=2),), 47, True, id="48 calls of signal A"),
        pytest.param((SignalA(note_at=2),), 48, False, id="49 calls of signal A"),
        pytest.param(preset("pr_32089").rules, 223, True, id="224 calls of #32089"),
        pytest.param(preset("pr_32089").rules, 224, False, id="225 calls of #32089"),
    ],
)
def test_a_call_is_forgotten_after_so_many_others(rules, gap, found):
    first_ones = [A] if rules[0].rule == "signal_a" else [A, A]
    assert bool(verdicts(only(*rules), [*first_ones, *NEWS[:gap], A])) is found


@pytest.mark.parametrize(("others", "action"), [(31, "ask"), (32, "warn")])
def test_takt_remembers_32_troubles(others, action):
    tools = [[call(f"nope{n}", say="unknown tool", fails=True)] * 2 for n in range(others + 1)]
    steps = [step for pair in [*tools, tools[0]] for step in pair]
    assert verdicts(LoopGuardPolicy.preset("takt"), steps)[-1].split()[1] == action


FAILED_READS = [call("read_file", n=n, say=f"{n * 'x'} broke", fails=True) for n in range(100)]
EDIT = call("edit", old="x", say="no match", fails=True)


@pytest.mark.parametrize(
    ("rules", "one", "others", "limit"),
    [
        pytest.param((SignalC(note_at=2),), SAME_ERROR[0], FAILED_READS, 24, id="signal C"),
        pytest.param((AutoGpt(failures=1),), FAILS[0], FAILED_READS, 96, id="AutoGPT"),
        pytest.param((Hermes(tool_warn_after=999),), FAILS[0], FAILED_READS, 64, id="hermes calls"),
        pytest.param(
            (Hermes(exact_warn_after=999, tool_warn_after=2),),
            FAILS[0], [c | {"name": f"tool{n}"} for n, c in enumerate(FAILED_READS)], 48,
            id="hermes tools",
        ),
        pytest.param(
            (Hermes(noprog_warn_after=1),),
            READ, [call("read_file", n=n, say=str(n)) for n in range(100)], 64,
            id="hermes answers",
        ),
        pytest.param(
            (HermesAgent(tool_failures_note=999, tool_failures_stop=999),),
            FAILS[0], FAILED_READS, 56, id="hermes-agent calls",
        ),
        pytest.param(
            (HermesAgent(call_failures_note=999, tool_failures_note=2),),
            FAILS[0], [c | {"name": f"tool{n}"} for n, c in enumerate(FAILED_READS)], 40,
            id="hermes-agent tools",
        ),
        pytest.param(
            (HermesAgent(),),
            READ, [call("read_file", n=n, say=str(n)) for n in range(100)], 40,
            id="hermes-agent answers",
        ),
        pytest.param(
            (Takt(failed_edits=2, failures=999, recent=100),),
            EDIT, [call("edit", n=n, say=f"{n * 'x'} no", fails=True) for n in range(90)], 32,
            id="takt edits",
        ),
    ],
)  # fmt: skip
def test_what_was_touched_last_is_remembered(rules, one, others, limit):
    remembered = verdicts(only(*rules), [one, *others[: limit - 1], one])
    forgotten = verdicts(only(*rules), [one, *others[:limit], one])
    assert (remembered != [], forgotten) == (True, [])


@pytest.mark.parametrize(("lines", "known"), [(599, True), (600, False)])
def test_signal_b_remembers_600_lines(lines, known):
    text = "\n".join(f"line {n}" for n in range(lines))
    steps = [A, call(say=text), call(say="ok\n"), call(say="ok\n\n"), call(say="ok\n\n\n")]
    assert bool(verdicts(only(SignalB()), steps)) is known


def test_signal_b_remembers_a_longer_answer_as_a_whole():
    text = "\n".join(f"line {n}" for n in range(700))
    assert verdicts(only(SignalB()), [call(say=text)] * 4) == ["3! warn 3/3"]


@pytest.mark.parametrize(("others", "known"), [(31, True), (32, False)])
def test_signal_b_remembers_32_whole_answers(others, known):
    long = call(say="\n".join(f"line {n}" for n in range(700)))
    steps = [long, *(call(say=f"word {n}") for n in range(others)), long, long, long]
    # Known as a whole, the long answer opens a streak of three; else only the second time.
    assert bool(verdicts(only(SignalB()), steps)) is known


# --- Odd input --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_odd_arguments_never_raise(name):
    guard = LoopGuard(LoopGuardPolicy.preset(name))
    for value in [*HOSTILE, None, "", "{bad", b"x", float("nan"), {1: 2}, {"\ud800": 1}]:
        for _ in range(2):
            decision = guard.check([{"name": "t", "args": value, "id": "x"}])
            guard.record_results(decision.record, [{"id": "x", "content": "ok"}])


# --- Policies ---------------------------------------------------------------------------------


def test_a_preset_is_found_by_any_spelling():
    assert LoopGuardPolicy.preset(" Gemini-CLI").rules == (GeminiCli(),)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(ValueError, match=r"no preset is called 'nope'.*seed, signals.*agentsight"):
        LoopGuardPolicy.preset("nope")


def test_takts_numbers_are_those_published():
    numbers = Takt().model_dump(exclude={"rule", "edit_tools"})
    assert numbers == {
        "equal_tuples": 12,
        "missing_tools": 2,
        "bad_arguments": 4,
        "failed_edits": 3,
        "failures": 10,
        "recent": 20,
        "recent_percent": 90,
        "steps_without_success": 120,
        "restarts": 1,
    }


def test_signals_are_the_three_of_them():
    assert LoopGuardPolicy.signals(max_refusals=1).rules == (SignalA(), SignalB(), SignalC())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json(name):
    policy = LoopGuardPolicy.preset(name, max_refusals=1)
    assert LoopGuardPolicy.model_validate_json(policy.model_dump_json()) == policy


RULES = [pytest.param(rule, id=rule.rule) for p in PRESETS.values() for rule in p.rules]


@pytest.mark.parametrize("rule", RULES)
def test_no_number_may_be_negative_or_unknown(rule):
    numbers = [name for name, value in rule if isinstance(value, int) and type(value) is int]
    for name in numbers:
        with pytest.raises(ValidationError):
            type(rule)(**{name: -1})
    with pytest.raises(ValidationError):
        type(rule)(no_such_number=1)


def test_a_wrong_number_in_a_policy_file_is_named():
    text = '{"rules": [{"rule": "kimi_code", "stop_at": 0}]}'
    with pytest.raises(ValidationError, match="stop_at"):
        LoopGuardPolicy.model_validate_json(text)


def test_a_policy_file_holds_own_and_foreign_rules():
    text = '{"rules": [{"rule": "cline", "stop_at": 9}, {"rule": "same_error"}]}'
    cline, same_error = LoopGuardPolicy.model_validate_json(text).rules
    assert (cline.stop_at, same_error.rule) == (9, "same_error")


def test_a_rule_that_nobody_has_is_an_error():
    with pytest.raises(ValidationError, match="nobody"):
        LoopGuardPolicy.model_validate({"rules": [{"rule": "nobody"}]})


def test_importing_the_package_imports_no_foreign_rule():
    code = (
        "import sys, langchain_loopguard\nassert not [m for m in sys.modules if '.harnesses' in m]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("rule", RULES)
def test_a_system_is_called_alike_in_preset_and_finding(rule):
    assert rule.rule == "repeated_batch" or isinstance(rule, ForeignRule)
    titles = {system.title for system in PRESETS.values()}
    signals = rule.rule.startswith("signal_")
    assert rule.rule == "repeated_batch" or signals or rule.title in titles


def test_rules_of_two_systems_run_side_by_side():
    policy = only(AutoGpt(), *preset("kimi_code").rules)
    assert verdicts(policy, [A] * 3) == ["2? warn 3/3"]


@pytest.mark.parametrize(
    ("config", "fields", "what"),
    [
        (Cline, {"note_at": 9}, "note_at and stop_at must not fall"),
        (SignalB, {"ask_at": 50}, "notes_at, ask_at and stop_at must not fall"),
        (SignalB, {"notes_at": (5, 3)}, "notes_at, ask_at and stop_at must not fall"),
        (Hermes, {"idempotent_tools": ("",)}, "a blank is neither"),
        (Cline, {"note_at": True}, "valid integer"),
        (Cline, {"note_at": "3"}, "valid integer"),
    ],
)
def test_odd_numbers_are_refused(config, fields, what):
    with pytest.raises(ValidationError, match=what):
        config(**fields)


def test_a_list_will_do_as_in_a_policy_file():
    assert SignalB(notes_at=[3, 5]) == SignalB()
