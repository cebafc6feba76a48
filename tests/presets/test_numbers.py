"""Does each system's rule fire at its numbers, and nowhere else?"""

import pytest

from langchain_loopguard.presets.gglib import Gglib
from langchain_loopguard.presets.hermes import Hermes, HermesAgent
from langchain_loopguard.presets.openclaw import OpenClaw
from langchain_loopguard.presets.signals import SignalA, SignalB, SignalC
from langchain_loopguard.presets.streaks import AgentSight
from langchain_loopguard.presets.takt import Takt
from langchain_loopguard.presets.windows import OpenHands
from tests.presets.plays import UNKNOWN, between, call, verdicts
from tests.presets.stories import (
    EVER_FAILS,
    FAILS,
    HARD,
    MISSING,
    NEWS,
    READ,
    REFUSED,
    SAME_ERROR,
    A,
    B,
    C,
    D,
    of,
)

SIGNALS_B_FROM_ONE = [
    "3! warn 3/3", "5! warn 5/5", "8! ask 8/8", "9? ask 8/8", "9! ask 9/8", "10? ask 9/8",
    "10! ask 10/8", "11? ask 10/8", "11! ask 11/8", "12? ask 11/8", "12! stop 12/12",
    "13? stop 12/12", "13! stop 13/12",
]  # fmt: skip

CASES = {
    "seed": (of("seed"), [A] * 3, ["2? ask 3/3"]),
    "gglib notes the third": ((Gglib(),), [A] * 4, ["2? warn 3/3", "3? warn 4/3"]),
    "gglib lets two run": ((Gglib(),), [A, A, B, A, A], []),
    "gglib refuses if told": ((Gglib(on_loop="refuse"),), [A] * 3, ["2? ask 3/3"]),
    "gglib reads on": ((Gglib(),), [READ] * 15, []),
    "gglib reads not for ever": ((Gglib(),), [READ] * 16, ["15? warn 16/16"]),
    "opencode v1": (of("opencode_v1"), [[A, A, A]], ["0? ask 3/3"]),
    "opencode v1 goes on": (of("opencode_v1"), [[A, A, A, A]], ["0? ask 4/3"]),
    "opencode v1 in the middle": (of("opencode_v1"), [[B, A, A, A, B]], ["0? ask 3/3"]),
    "opencode v1 two": (of("opencode_v1"), [[A, A], [A, A]], []),
    "opencode v1 broken": (of("opencode_v1"), [[A, A, B, A]], []),
    "opencode v1 other messages": (of("opencode_v1"), [A] * 9, []),
    "opencode v1 key order": (
        of("opencode_v1"), [[call(a=1, b=2), call(b=2, a=1), call(a=1, b=2)]], [],
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
        of("kimi_code"), [A] * 13,
        ["2? warn 3/3", "4? warn 5/5", "7? warn 8/8", "11? stop 12/12", "12? stop 13/12"],
    ),
    "kimi rotation": (of("kimi_code"), [A, B] * 40, []),
    "kimi within a batch": (of("kimi_code"), [[A] * 6], ["0? warn 5/5"]),
    "deepseek": (
        of("deepseek_harness"), [A] * 9,
        ["2? warn 3/3", "4? warn 5/5", "7? ask 8/8", "8? ask 9/8"],
    ),
    "deepseek rotation": (of("deepseek_harness"), [A, A, B] * 40, []),
    "cline": (
        of("cline"), [A] * 6, ["2? warn 3/3", "4? stop 5/5", "5? stop 6/5"],
    ),
    "cline broken": (of("cline"), [A, A, B] * 20, []),
    "roo": (of("roo_code"), [A] * 8, ["3? ask 4/4", "7? ask 4/4"]),
    "roo three": (of("roo_code"), [A, A, A, B] * 9, []),
    "crewai": (of("crewai"), [A] * 3, ["1? ask 2/2", "2? ask 3/2"]),
    "crewai names": (
        of("crewai"), [call("Do It!", a=1), call("do_it", a=1)], ["1? ask 2/2"],
    ),
    "crewai other": (of("crewai"), [A, B] * 4, []),
    "crewai tally": (
        of("crewai"), between([A] * 6, NEWS), ["8! stop 5/5", "9? stop 5/5", "10? stop 5/5",
                                               "10! stop 6/5", "11? stop 6/5"],
    ),
    "crewai tally beside the adjacent rule": (
        of("crewai"), [A] * 5, ["1? ask 2/2", "2? ask 3/2", "3? ask 4/2", "4? ask 5/2",
                                "4! stop 5/5"],
    ),
    "crewai tally, other results": (
        of("crewai"), between([call(cmd="a", say=str(n % 2)) for n in range(8)], NEWS), [],
    ),
    "crewai tally, unknown results": (
        of("crewai"), between([call(cmd="a", say=UNKNOWN)] * 9, NEWS), [],
    ),
    "agentsight": (of("agentsight"), [[A, B]] * 6, ["4? warn 5/5", "5? warn 6/5"]),
    "agentsight four": (of("agentsight"), [*[A] * 4, B] * 3, []),
    "agentsight other arguments": (of("agentsight"), NEWS[:20], []),
    "agentsight other order": (of("agentsight"), [[A, B], [B, A]] * 5, []),
    "agentsight ends the process": (
        (AgentSight(kill_enabled=True),), [A] * 8,
        ["4? warn 5/5", "5? warn 6/5", "6? stop 7/7", "7? stop 8/7"],
    ),
    "#46272": (of("pr_46272"), [A] * 11, ["9? stop 10/10", "10? stop 11/10"]),
    "#46272 nine": (of("pr_46272"), [*[A] * 9, B] * 3, []),
    "#32089": (of("pr_32089"), between([A] * 4, NEWS), ["4? ask 3/3", "6? ask 4/3"]),
    "#32089 two": (of("pr_32089"), [A, A, B, B], []),
    "#47797 one": (of("pr_47797"), [A] * 4, ["2? ask 3/3", "3? ask 4/3"]),
    "#47797 ten": (
        of("pr_47797"), [call(n=n) for n in range(10)] * 3 + [call(n=0)],
        ["29? ask 3/3", "30? ask 3/3"],
    ),
    "#47797 eleven": (of("pr_47797"), [call(n=n) for n in range(11)] * 6, []),
    "#47845": (of("pr_47845"), [[A, B] * 3, [A, B]], ["0? ask 3/3"]),
    "#47845 one": (of("pr_47845"), [[A, A, A]], ["0? ask 3/3"]),
    "#47845 in the middle": (of("pr_47845"), [[C, *[A, B] * 3, D]], ["0? ask 3/3"]),
    "#47845 long": (of("pr_47845"), [[call(n=n) for n in range(20)] * 3], ["0? ask 3/3"]),
    "#47845 two laps": (of("pr_47845"), [[A, B] * 2, [A, B] * 2], []),
    "#47845 reads 60": (of("pr_47845"), [[*NEWS[:58], A, A, A]], []),
    "#37109": (
        of("pr_37109"), [A, B, C, READ, D],
        ["2! ask 3/3", "4? ask 3/3", "4! ask 4/3"],
    ),
    "#37109 other output": (of("pr_37109"), [A, B, NEWS[0]] * 3, []),
    "#37109 no terminal": (of("pr_37109"), [READ] * 9, []),
    "#37109 unknown": (of("pr_37109"), [A, B, call(say=UNKNOWN)], []),
    "gemini one": (of("gemini_cli"), [A] * 6, ["4? warn 5/5", "5? stop 6/5"]),
    "gemini five": (
        of("gemini_cli"), [call(n=n) for n in range(5)] * 5, ["24? warn 5/5"],
    ),
    "gemini six": (of("gemini_cli"), [call(n=n) for n in range(6)] * 9, []),
    "gemini second cycle": (
        of("gemini_cli"), [*[A] * 5, B, *[C] * 5], ["4? warn 5/5", "10? stop 5/5"],
    ),
    "gemini key order": (
        of("gemini_cli"), [call(a=1, b=2), call(a=1, b=2), call(b=2, a=1)] * 4, [],
    ),
    "openclaw": (
        of("openclaw"), [A] * 32,
        [
            *(f"{n}? warn {n}/10" for n in range(10, 20)),
            *(f"{n}? ask {n}/20" for n in range(20, 30)),
            "30? stop 30/30", "31? stop 30/30",
        ],
    ),
    "openclaw new answers": (
        of("openclaw"), [call(cmd="a", say=str(n)) for n in range(32)],
        [f"{n}? warn {min(n, 30)}/10" for n in range(10, 32)],
    ),
    "openclaw two answers": (
        of("openclaw"), [call(cmd="a", say="xy"[n % 2]) for n in range(25)],
        [f"{n}? warn {n}/10" for n in range(10, 25)],
    ),
    "openclaw unknown answers": (
        of("openclaw"), [call(cmd="a", say=UNKNOWN)] * 31,
        [f"{n}? warn {n}/10" for n in range(10, 31)],
    ),
    "openclaw others between": (
        of("openclaw"), between([A] * 15, NEWS),
        [f"{n}? warn 10/10" for n in range(20, 21)]
        + [f"{n}? warn {n // 2}/10" for n in range(22, 30, 2)],
    ),
    "openclaw in turn": (
        of("openclaw"), [A, B] * 10,
        [*(f"{n}? warn {n + 1}/10" for n in range(9, 19)), "19? ask 20/20"],
    ),
    "openclaw in turn, another answer before": (
        of("openclaw"), [call(cmd="a", say="no"), *[A, B] * 10],
        [*(f"{n}? warn {n}/10" for n in range(10, 20)), "20? ask 20/20"],
    ),
    "openclaw in turn, another answer first": (
        of("openclaw"), [call(cmd="a", say="no"), B, *[A, B] * 9],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw in turn, new answers": (
        of("openclaw"),
        [call(cmd="ab"[n % 2], say=str(n)) for n in range(20)],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw in turn, unknown answers": (
        of("openclaw"),
        [call(cmd="ab"[n % 2], say=UNKNOWN) for n in range(20)],
        [f"{n}? warn {n + 1}/10" for n in range(9, 20)],
    ),
    "openclaw missing tool": (
        of("openclaw"), MISSING[:12], ["10? ask 10/10", "11? ask 11/10"],
    ),
    "openclaw missing tool broken": (
        of("openclaw"), [*MISSING[:9], A, *MISSING[10:19]], [],
    ),
    "openclaw big batch": (
        (OpenClaw(window=2),), [[A, B, C]], [],
    ),
    "autogpt": (
        of("autogpt"), between(FAILS[:5], [READ] * 5), ["6? ask 3/3", "8? ask 4/3"],
    ),
    "autogpt success of the tool": (of("autogpt"), [*FAILS[:2], B, *FAILS[:3]], []),
    "autogpt other arguments": (of("autogpt"), EVER_FAILS[:9], []),
    "autogpt unknown": (of("autogpt"), [call(cmd="a", say=UNKNOWN)] * 9, []),
    "autogpt empty": (
        of("autogpt"), [[call("t"), A]] * 6, ["4? stop 5/5", "5? stop 6/5"],
    ),
    "autogpt empty broken": (of("autogpt"), [*[call("t")] * 4, A] * 3, []),
    "openhands pairs": (
        of("openhands"), [A] * 5, ["3! stop 4/4", "4? stop 4/4", "4! stop 5/4"],
    ),
    "openhands three pairs": (of("openhands"), [A, A, A, B] * 5, []),
    "openhands failures": (
        of("openhands"), FAILS[:6],
        ["2! warn 3/3", "3! stop 4/4", "4? stop 4/4", "4! stop 5/4", "5? stop 5/4", "5! stop 6/4"],
    ),
    "openhands two failures": (of("openhands"), [*FAILS[:2], A, *FAILS[2:4], B], []),
    "openhands in turn": (of("openhands"), [A, B] * 3, ["5! stop 3/3"]),
    "openhands in turn goes on": (
        of("openhands"), [A, B] * 4,
        ["5! stop 3/3", "6? stop 3/3", "6! stop 3/3", "7? stop 3/3", "7! stop 4/3"],
    ),
    "openhands in turn, other answer": (
        of("openhands"), [A, B, A, B, call(cmd="a", say="no"), B], [],
    ),
    "openhands sees ten calls": (
        (OpenHands(equal_pairs=11),), [A] * 40, [],
    ),
    "openhands sees less": ((OpenHands(window=6),), [A] * 9, []),
    "openhands three in turn": (of("openhands"), [A, B, C] * 9, []),
    "openhands unknown": (of("openhands"), [A, A, A, call(say=UNKNOWN), A, A, A], []),
    "hermes-agent call failures": (
        of("hermes_agent"), FAILS[:8],
        [
            "1! warn 2/2", "2! warn 3/2", "3! warn 4/2", "4! warn 5/2", "5? ask 5/5",
            "5! warn 6/2", "6? ask 6/5", "6! warn 7/2", "7? ask 7/5", "7! stop 8/8",
        ],
    ),
    "hermes-agent tool failures": (
        of("hermes_agent"), EVER_FAILS[:9],
        [*(f"{n}! warn {n + 1}/3" for n in range(2, 7)), "7! stop 8/8", "8? stop 8/8",
         "8! stop 9/8"],
    ),
    "hermes-agent changing success": (
        of("hermes_agent"), [*EVER_FAILS[:2], call("write", n=0), *EVER_FAILS[2:4]], [],
    ),
    "hermes-agent success of the reader": (
        of("hermes_agent"),
        [*(call("read_file", n=n, say=f"{n * 'y'} no", fails=True) for n in range(2)), READ,
         *(call("read_file", n=n, say=f"{n * 'z'} no", fails=True) for n in (5, 6))],
        [],
    ),
    "hermes-agent other reader's success": (
        of("hermes_agent"), [*EVER_FAILS[:2], READ, EVER_FAILS[2]], ["3! warn 3/3"],
    ),
    "hermes-agent same answer": (
        of("hermes_agent"), between([READ] * 6, NEWS),
        ["2! warn 2/2", "4! warn 3/2", "6! warn 4/2", "8! warn 5/2", "10? ask 5/5",
         "10! warn 6/2"],
    ),
    "hermes-agent other answer": (
        of("hermes_agent"), [READ, call("read_file", path="a.py", say="more")] * 2, [],
    ),
    "hermes-agent streak": (
        of("hermes_agent"), [A] * 6,
        ["2! warn 3/3", "3! warn 4/3", "4! stop 5/5", "5? stop 5/5", "5! stop 6/5"],
    ),
    "hermes-agent cycle of four": (
        of("hermes_agent"), [A, B, C, D] * 5,
        [*(f"{n}! warn 3/3" for n in range(11, 15)), *(f"{n}! warn 4/3" for n in range(15, 19)),
         "19! stop 5/5"],
    ),
    "hermes-agent cycle of five": (
        of("hermes_agent"), [call(n=n) for n in range(5)] * 9, [],
    ),
    "hermes-agent unknown": (
        of("hermes_agent"), [A, A, call(say=UNKNOWN), A, A], [],
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
        of("hermes"), FAILS[:7],
        [f"{n}! warn {n + 1}/2" for n in range(1, 7)],
    ),
    "hermes calls, hard": (
        HARD, FAILS[:6],
        [*(f"{n}! warn {n + 1}/2" for n in range(1, 5)), "5? ask 5/5", "5! warn 6/2"],
    ),
    "hermes tool": (
        of("hermes"), EVER_FAILS[:10],
        [f"{n}! warn {n + 1}/3" for n in range(2, 10)],
    ),
    "hermes tool, hard": (
        HARD, EVER_FAILS[:9],
        [*(f"{n}! warn {n + 1}/3" for n in range(2, 8)), "8? stop 8/8", "8! warn 9/3"],
    ),
    "hermes reads": (
        of("hermes"), between([READ] * 7, NEWS),
        [f"{n}! warn {n // 2 + 1}/3" for n in range(4, 14, 2)],
    ),
    "hermes reads, hard": (
        HARD, [READ] * 7,
        ["2! warn 3/3", "3! warn 4/3", "4! warn 5/3", "5! ask 6/6", "6? ask 6/6", "6! ask 7/6"],
    ),
    "hermes other answer": (
        of("hermes"), [READ, READ, call("read_file", path="a.py", say="b")] * 5,
        [],
    ),
    "hermes other tools": (HARD, [A] * 20, []),
    "hermes unknown": (
        of("hermes"), [call("read_file", say=UNKNOWN)] * 9, [],
    ),
    "hermes success clears nothing": (
        of("hermes"), [FAILS[0], A, FAILS[1]], ["2! warn 2/2"],
    ),
    "hermes without warnings": (
        (Hermes(warnings_enabled=False),),
        [*FAILS, *[READ] * 9], [],
    ),
    "takt equal tuples": (
        of("takt"), [A] * 37,
        ["11! warn 12/12", "23! ask 12/12", "24? ask 12/12", "35! stop 12/12", "36? stop 12/12"],
    ),
    "takt no restart left": (
        (Takt(restarts=0),), [A] * 25, ["11! warn 12/12", "23! stop 12/12", "24? stop 12/12"],
    ),
    "takt eleven": (of("takt"), [*[A] * 11, B] * 5, []),
    "takt other result": (of("takt"), [call(cmd="a", say=str(n)) for n in range(60)], []),
    "takt missing tools": (of("takt"), MISSING[:2], ["1! warn 2/2"]),
    "takt missing tools after another error": (
        of("takt"), [EVER_FAILS[0], *MISSING[:2]], ["2! warn 2/2"],
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
    "takt one missing tool": (of("takt"), [MISSING[0], EVER_FAILS[0], MISSING[1]], []),
    "takt missing tools of two": (
        of("takt"), [*MISSING[:2], *(c | {"name": "nix"} for c in MISSING[2:4])],
        ["1! warn 2/2", "3! warn 2/2"],
    ),
    "takt bad arguments": (of("takt"), REFUSED[:4], ["3! warn 4/4"]),
    "takt bad arguments of two": (
        of("takt"), [*REFUSED[:3], call("cat", say="schema error", fails=True)], [],
    ),
    "takt bad arguments, other error": (
        of("takt"), [*REFUSED[:3], EVER_FAILS[0], *REFUSED[3:6]], [],
    ),
    "takt edits": (
        of("takt"),
        between([call("edit", old="x", say="no match", fails=True)] * 3, EVER_FAILS),
        ["4! warn 3/3"],
    ),
    "takt edits, success": (
        of("takt"), [*[call("edit", old="x", say="no", fails=True)] * 2, A] * 2, [],
    ),
    "takt other tool is no edit": (of("takt"), FAILS[:9], []),
    "takt failures": (of("takt"), EVER_FAILS[:10], ["9! warn 10/10"]),
    "takt nine failures": (of("takt"), [*EVER_FAILS[:9], A], []),
    "takt share": (
        of("takt"), [*EVER_FAILS[:9], A, *EVER_FAILS[10:19], B, C, EVER_FAILS[20]], [],
    ),
    "takt share of 18": (
        of("takt"), [A, *EVER_FAILS[:9], B, *EVER_FAILS[10:19]], ["19! warn 18/18"],
    ),
    "takt steps": (
        of("takt"), [call(n=n, say=UNKNOWN) for n in range(121)], ["119! warn 120/120"],
    ),
    "takt steps, success": (
        of("takt"),
        [*[call(say=UNKNOWN)] * 119, A, call(say=UNKNOWN)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("reload", [False, True], ids=["kept", "stored"])
@pytest.mark.parametrize(
    ("rules", "steps", "expected"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_a_rule_fires_at_its_numbers(rules, steps, expected, reload):
    assert verdicts(rules, steps, reload=reload) == expected
