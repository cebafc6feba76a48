"""What do agents of several trades do that looks like a loop, and which loops do they fall into?

More shapes for `tests.rules.shapes`, trade by trade and written without a look at the rules: agents
that write code, browse, query data, search, answer customers, wait for jobs, talk to each other.
Each says why it is what it is.
"""

# ruff: noqa: E501, RUF001 - the words of made-up tools, in several languages.
# ruff: noqa: S608 - the arguments of a made-up tool.

from __future__ import annotations

import json
from itertools import count, cycle

from tests.rules.shapes import SHAPES, Shape

_family = ""


def _add(name, *, loop, within=0, poll_tools=()):
    def add(build):
        assert name not in SHAPES
        SHAPES[name] = Shape(name, build, loop, within, poll_tools, family=_family)
        return build

    return add


def good(name, why, poll=()):
    """Good work, with the reason why it is."""
    assert why
    return _add(name, loop=False, poll_tools=poll)


def loop(name, within, why, poll=()):
    """A loop, with the reason why it is; asked about within so many batches."""
    assert why
    return _add(name, loop=True, within=within, poll_tools=poll)


def rotate(talk, steps):
    """Run steps round and round; each step makes one batch."""
    for lap in count():
        for place, step in enumerate(steps):
            if lap == 1 and place == 0:
                talk.first_repeat()
            step()
        if lap >= 1 and not talk.goes_on():
            return


# --- GOOD: coding ---------------------------------------------------------------------------------

_family = "good: coding"


@good("rename-import-in-35-files", "one str_replace over many files, always the same receipt")
def _(t):
    for _ in range(35):
        t.call(
            "str_replace_based_edit_tool",
            {
                "command": "str_replace",
                "path": t.path(),
                "old_str": "from utils import log",
                "new_str": "from core.logging import log",
            },
            "The file has been edited successfully.",
        )


@good("view-then-edit-25-files-equal-header", "each file shares a licence header, one line differs")
def _(t):
    head = "# Copyright 2024 Acme Inc.\n# Licensed under the Apache License\n\nfrom __future__ import annotations"
    for _ in range(25):
        p = t.path()
        t.call("view", {"path": p}, f"{head}\nclass {t.word().title()}: pass")
        t.call("str_replace", {"path": p, "old": "2024", "new": "2026"}, "File edited successfully")


@good("reading-10-boilerplate-init-files", "10 different files that happen to be equal")
def _(t):
    text = "# Copyright 2024 Acme Inc.\n# SPDX: Apache-2.0\n\n__all__: list[str] = []\n"
    for _ in range(10):
        t.call("read_file", {"path": f"src/{t.word()}/__init__.py"}, text)
    t.call("bash", {"command": "git commit -am x"}, f"[main {t.hex(7)}] x")


@good("flaky-test-6-runs-alternating", "user: is this test flaky? passes and fails alternate")
def _(t):
    for n in range(6):
        ok = n % 2 == 0
        t.call(
            "bash",
            {"command": "pytest -q tests/test_io.py"},
            f"{'1 passed' if ok else 'FAILED tests/test_io.py::test_a' + chr(10) + '1 failed'} in {t.random.random():.2f}s",
            "success" if ok else "error",
        )
    t.call("edit_file", {"path": "tests/test_io.py", "new": t.words(3)}, "ok")


@good("git-bisect-9-steps", "bisect answers name a new commit, tests say the same two things")
def _(t):
    t.call(
        "bash", {"command": "git bisect start HEAD v1.0"}, "Bisecting: 256 revisions left to test"
    )
    for n in range(9):
        bad = t.random.random() < 0.5
        t.call(
            "bash",
            {"command": "make test"},
            "FAIL: test_render\n1 failed, 40 passed" if bad else "41 passed",
            "error" if bad else "success",
        )
        t.call(
            "bash",
            {"command": f"git bisect {'bad' if bad else 'good'}"},
            f"Bisecting: {256 >> n} revisions left to test after this (roughly {8 - n} steps)\n[{t.hex(40)}] {t.words(3)}",
        )


@good("git-bisect-all-bad", "the same `git bisect bad` and the same failing test, commits move")
def _(t):
    for n in range(8):
        t.call("bash", {"command": "make test"}, "FAIL: test_render\n1 failed, 40 passed", "error")
        t.call(
            "bash",
            {"command": "git bisect bad"},
            f"Bisecting: {256 >> n} revisions left to test after this (roughly {8 - n} steps)\n[{t.hex(40)}] {t.words(3)}",
        )


@good(
    "rebase-with-9-conflicts-in-one-file",
    "git rebase --continue conflicts at another commit each time",
)
def _(t):
    for _ in range(9):
        t.call(
            "bash",
            {"command": "git rebase --continue"},
            f"Auto-merging CHANGELOG.md\nCONFLICT (content): Merge conflict in CHANGELOG.md\nerror: could not apply {t.hex(7)}... {t.words(3)}",
            "error",
        )
        t.call("edit_file", {"path": "CHANGELOG.md", "new": t.words(5)}, "File edited successfully")
        t.call("bash", {"command": "git add CHANGELOG.md"}, "")
    t.call(
        "bash",
        {"command": "git rebase --continue"},
        "Successfully rebased and updated refs/heads/x.",
    )


@good("rebase-skip-8-times", "git rebase --skip, another commit is skipped each time")
def _(t):
    for n in range(8):
        t.call(
            "bash",
            {"command": "git rebase --skip"},
            f"Rebasing ({n + 2}/10)\nCONFLICT (content): Merge conflict in a.lock\nerror: could not apply {t.hex(7)}... bump",
            "error",
        )


@good(
    "mypy-errors-shrink-with-edits", "every error line was seen before; one fewer after each edit"
)
def _(t):
    errs = [f"src/a.py:{t.random.randint(1, 900)}: error: {t.words(3)}" for _ in range(14)]
    while errs:
        t.call(
            "bash",
            {"command": "mypy src"},
            "\n".join([*errs, f"Found {len(errs)} errors in 1 file"]),
            "error",
        )
        errs.pop()
        t.call("bash", {"command": f"sed -i 's/{t.word()}/{t.word()}/' src/a.py"}, "")


@good(
    "eslint-fix-shrinks-with-the-fixer-tool",
    "run_fixer with the same arguments fixes one more thing each time",
)
def _(t):
    probs = [f"{t.random.randint(1, 300)}:5  error  {t.words(3)}" for _ in range(7)]
    while probs:
        t.call("run_lint", {"path": "src"}, "\n".join([*probs, f"{len(probs)} problems"]), "error")
        probs.pop()
        t.call("edit", {"path": "src/x.ts", "old": t.words(2), "new": t.words(2)}, "Applied 1 edit")


@good("edit-miss-reread-3-times", "old_str not found, view again (unchanged), third attempt hits")
def _(t):
    text = t.lines(20)
    t.call("view", {"path": "a.py"}, text)
    for _ in range(3):
        t.fails(
            "str_replace",
            {"path": "a.py", "old": t.lines(2), "new": "x"},
            "No replacement was performed, old_str did not appear verbatim in a.py.",
        )
        t.call("view", {"path": "a.py"}, text)
    t.call("str_replace", {"path": "a.py", "old": t.lines(2), "new": "x"}, "File edited")


@good("npm-install-in-14-packages", "another directory each, three equal lines of answer")
def _(t):
    for _ in range(14):
        t.call(
            "bash",
            {"command": f"cd packages/{t.word()} && npm install"},
            f"up to date, audited 213 packages in {t.random.randint(1, 9)}s\n\nfound 0 vulnerabilities",
        )


@good("prettier-on-20-files", "formatter per file, equal receipts")
def _(t):
    for _ in range(20):
        t.call("format_file", {"path": t.path("ts")}, "1 file reformatted.\nDone.")


@good("lint-20-files-clean", "a checking tool per file, two equal lines: clean")
def _(t):
    for _ in range(20):
        t.call("lint_file", {"path": t.path()}, "No issues found.\n0 errors, 0 warnings")


@good("check-types-of-12-files-clean", "as above, another tool and JSON")
def _(t):
    for _ in range(12):
        t.call(
            "check_types",
            {"file": t.path("ts")},
            json.dumps({"errors": [], "warnings": []}, indent=2),
        )


@good("diagnostics-of-20-files", "one-line answer: no diagnostics")
def _(t):
    for _ in range(20):
        t.call("get_diagnostics", {"path": t.path()}, "No diagnostics found")


@good("dead-code-audit-14-greps-two-lines", "is this symbol used? 14 symbols, none is")
def _(t):
    for _ in range(14):
        t.call(
            "grep_search",
            {"pattern": t.word(), "path": "src"},
            "Found 0 matches\nSearched 412 files",
        )


@good("dead-code-audit-with-found-ones", "every sixth symbol is used")
def _(t):
    for n in range(24):
        w = t.word()
        t.call(
            "grep_search",
            {"pattern": w, "path": "src"},
            "Found 0 matches\nSearched 412 files"
            if n % 6 != 5
            else f"Found 1 match\nsrc/a.py:{n}: {w}()\nSearched 412 files",
        )


@good("head-of-12-csvs-same-header", "shell reading many files with equal headers")
def _(t):
    for _ in range(12):
        t.call("bash", {"command": f"head -2 data/{t.word()}.csv"}, "id,name,amount\n1,test,0")


@good("test-file-by-file-12-pass", "run_tests per file, the same summary")
def _(t):
    for _ in range(12):
        t.call(
            "run_tests",
            {"file": f"tests/test_{t.word()}.py"},
            f"Tests: 3 passed, 3 total\nSnapshots: 0 total\nTime: {t.random.random():.2f} s\nRan all test suites matching",
        )


@good("edit-and-build-in-one-batch", "a parallel batch of edit and build, the build error stays")
def _(t):
    e = "error TS2345: Argument of type 'string' is not assignable\n  src/x.ts:12\nFound 1 error."
    for _ in range(12):
        t.batch(
            ("edit", {"path": "src/x.ts", "new": t.words(4)}, "ok"),
            ("bash", {"command": "tsc"}, e, "error"),
        )


@good("debugger-steps-14", "step over, another line each time")
def _(t):
    for n in range(14):
        t.call("debugger_step_over", {}, f"> /app/main.py({n + 30})run()\n-> {t.words(3)}")


@good("debugger-steps-through-a-for-loop", "14 steps: source lines come back, the values move")
def _(t):
    src = [t.words(3) for _ in range(3)]
    for n in range(14):
        t.call(
            "step",
            {"kind": "over"},
            f"main.py:{10 + n % 3}  {src[n % 3]}\nlocals: i={n // 3} total={(n // 3) * 7}",
        )


@good("terminal-space-through-a-pager", "send_keys Space, another screen each time")
def _(t):
    for _ in range(14):
        t.call("send_keys", {"keys": "Space"}, t.lines(20) + "\n--More--")


@good("installer-wizard-enter-8-times", "press Enter for defaults; another question each time")
def _(t):
    for n in range(8):
        t.call("terminal_send", {"text": "\n"}, f"[{n + 1}/8] {t.words(4)}? [default]")


@good("notebook-cells-20", "cell by cell, no output")
def _(t):
    for n in range(20):
        t.call("execute_cell", {"index": n}, "")


@good("notebook-cells-20-with-status-lines", "cell by cell, two equal lines of answer")
def _(t):
    for n in range(20):
        t.call("run_cell", {"cell_id": n}, "Cell executed.\nNo output.")


@good("apply-patch-18-times", "another patch each time, Done!")
def _(t):
    for _ in range(18):
        t.call("apply_patch", {"patch": t.lines(4)}, "Done!\nM src/app.ts")


@good("git-stash-compare-4-times-with-edits", "stash, test, pop, test, edit: 4 laps")
def _(t):
    for _ in range(4):
        t.call(
            "bash",
            {"command": "git stash"},
            f"Saved working directory and index state WIP on main: {t.hex(7)} x",
        )
        t.call("bash", {"command": "pytest -q"}, "2 failed, 10 passed", "error")
        t.call(
            "bash",
            {"command": "git stash pop"},
            f"On branch main\nDropped refs/stash@{{0}} ({t.hex(40)})",
        )
        t.call("bash", {"command": "pytest -q"}, "1 failed, 11 passed", "error")
        t.call("edit", {"path": "a.py", "new": t.words(3)}, "ok")


@good(
    "benchmark-6-runs-for-the-variance", "the same benchmark 6 times; the durations are the result"
)
def _(t):
    for _ in range(6):
        t.call("bash", {"command": "python bench.py"}, f"elapsed: {1 + t.random.random():.3f}s")
    t.call("edit", {"path": "a.py", "new": t.words(3)}, "ok")


@good("benchmark-two-branches-3-laps", "checkout main, bench, checkout feature, bench: 3 laps")
def _(t):
    for _ in range(3):
        for b, base in (("main", 12), ("feature", 10)):
            t.call("bash", {"command": f"git checkout {b}"}, f"Switched to branch '{b}'")
            t.call(
                "bash",
                {"command": "cargo bench"},
                f"parse   time: [{base + t.random.random():.3f} ms {base + t.random.random():.3f} ms {base + 1 + t.random.random():.3f} ms]",
            )


@good("cherry-pick-15-commits", "another commit each")
def _(t):
    for _ in range(15):
        t.call(
            "bash",
            {"command": f"git cherry-pick {t.hex(8)}"},
            f"[release {t.hex(7)}] {t.words(3)}\n 1 file changed, 2 insertions(+)",
        )


@good("terraform-state-mv-15", "another address each, equal receipts")
def _(t):
    for _ in range(15):
        t.call(
            "bash",
            {"command": f"terraform state mv aws.{t.word()} module.{t.word()}"},
            'Move "x" to "y"\nSuccessfully moved 1 object(s).',
        )


@good(
    "codegen-loop-with-silent-formatter-and-status",
    "write, format (silent), git status (grows by one line)",
)
def _(t):
    files = []
    for _ in range(12):
        p = t.path()
        files.append(f"?? {p}")
        t.call("write_file", {"path": p, "content": t.lines(5)}, "Wrote file.")
        t.call("bash", {"command": "ruff format ."}, "")
        t.call("bash", {"command": "git status --short"}, "\n".join(files))


@good("python-part-loads-30", "python load.py --part LAPS; two equal lines")
def _(t):
    for n in range(30):
        t.call(
            "bash",
            {"command": f"python load.py --part {n}"},
            "Loaded 500 rows\nSkipped 0 rows\nDone",
        )


@good("migration-one-step-at-a-time-9", "alembic upgrade +1, another revision each time")
def _(t):
    for _ in range(9):
        t.call(
            "bash",
            {"command": "alembic upgrade +1"},
            f"INFO  Running upgrade {t.hex(12)} -> {t.hex(12)}, {t.words(3)}",
        )


@good(
    "failing-test-with-searching-between",
    "the test runs only 4 times, 3 new short looks between each",
)
def _(t):
    for _ in range(4):
        t.call("run_tests", {}, "FAILED test_a\n1 failed", "error")
        for _ in range(3):
            t.call("grep", {"pattern": t.word()}, f"src/{t.word()}.py:12: {t.words(2)}")


@good(
    "compile-errors-of-7-attempts-each-other-line",
    "errors differ in their words; edits succeed between",
)
def _(t):
    for _ in range(7):
        t.call("write_file", {"path": "m.rs", "content": t.lines(3)}, "ok")
        t.fails(
            "cargo_check",
            {},
            f"error[E0308]: mismatched types\n --> src/m.rs:{t.random.randint(1, 99)}:5\n{t.words(2)}",
        )


# --- GOOD: browser --------------------------------------------------------------------------------

_family = "good: browser"


def page(t, n=6):
    return (
        "- banner: Shop\n- navigation: Home Products Cart\n"
        + "\n".join(f"- listitem: {t.words(3)}" for _ in range(n))
        + "\n- contentinfo: (c) 2026"
    )


@good("click-next-page-15", "the same Next button, other items each time, nothing between")
def _(t):
    for _ in range(15):
        t.call("browser_click", {"element": "Next", "ref": "e88"}, page(t))


@good("click-load-more-12", "the list grows with each click on Load more")
def _(t):
    items = []
    for _ in range(12):
        items += [f"- listitem: {t.words(3)}" for _ in range(5)]
        t.call("click", {"selector": "#load-more"}, "\n".join(items))


@good("date-picker-next-month-11", "the month's name moves with each click")
def _(t):
    months = (
        "April May June July August September October November December January February".split()
    )
    for m in months:
        t.call(
            "browser_click",
            {"element": "Next month", "ref": "e12"},
            f"dialog: choose a date\n- heading: {m}\n- grid: Mo Tu We Th Fr Sa Su",
        )


@good("infinite-scroll-20", "header equal, two new cards at each scroll")
def _(t):
    for _ in range(20):
        t.call("browser_scroll", {"direction": "down", "amount": 800}, page(t, 2))


@good("infinite-scroll-20-in-pairs", "scroll answers ok, the snapshot brings new cards")
def _(t):
    for _ in range(20):
        t.call("scroll", {"dy": 800}, "ok")
        t.call("browser_snapshot", {}, page(t, 2))


@good("evaluate-scroll-15", "JS scroll by an unknown tool; answers undefined; snapshot new")
def _(t):
    for _ in range(15):
        t.call("browser_evaluate", {"function": "() => window.scrollBy(0, 900)"}, "undefined")
        t.call("browser_snapshot", {}, page(t, 3))


@good("form-of-18-fields", "typed fields, the answer echoes code and the equal page")
def _(t):
    snap = page(t)
    for n in range(18):
        w = t.word()
        t.call(
            "browser_type",
            {"ref": f"e{n + 10}", "text": w},
            f"### Ran Playwright code\nawait page.locator('aria-ref=e{n + 10}').fill('{w}');\n{snap}",
        )


@good("wait-for-text-3-timeouts", "a slow page: three timeouts, then it is there")
def _(t):
    for _ in range(3):
        t.fails(
            "browser_wait_for",
            {"text": "Dashboard"},
            "TimeoutError: waited 5000ms for text Dashboard",
        )
        t.call("browser_snapshot", {}, "- progressbar: Loading")
    t.call("browser_wait_for", {"text": "Dashboard"}, "found")


@good("computer-use-20-clicks-image-each", "click elsewhere, a screenshot that differs")
def _(t):
    for _ in range(20):
        t.call(
            "computer",
            {
                "action": "left_click",
                "coordinate": [t.random.randint(1, 1200), t.random.randint(1, 800)],
            },
            "",
        )
        t.call("computer", {"action": "screenshot"}, t.image())


@good(
    "computer-use-next-button-12-image-each",
    "the same place (Next), a screenshot that differs each time",
)
def _(t):
    for _ in range(12):
        t.call("computer", {"action": "left_click", "coordinate": [512, 700]}, "")
        t.call("computer", {"action": "screenshot"}, t.image())


@good(
    "computer-use-images-dropped",
    "the host replaces images by a placeholder; clicks are elsewhere each time",
)
def _(t):
    for _ in range(20):
        t.call(
            "computer",
            {
                "action": "left_click",
                "coordinate": [t.random.randint(1, 1200), t.random.randint(1, 800)],
            },
            "[screenshot]",
        )


@good("computer-use-one-call-with-image", "each action answers with its screenshot")
def _(t):
    for a in ("Tab", "Tab", "Return") * 6:
        t.call("computer", {"action": "key", "text": a}, t.image())


@good("tab-9-times-with-image", "pressing Tab through a form, the focus moves in the picture")
def _(t):
    for _ in range(9):
        t.call("computer", {"action": "key", "text": "Tab"}, t.image())


@good("screenshots-while-a-page-loads", "three equal pictures, then another, twice")
def _(t):
    for _ in range(3):
        data = t.hex(300)
        for _ in range(3):
            t.call("take_screenshot", {}, t.image(data, "image_url"))
    t.call("click", {"selector": t.word()}, "ok")


@good("view-15-images", "15 paths, 15 pictures")
def _(t):
    for _ in range(15):
        t.call("view_image", {"path": f"{t.word()}.png"}, t.image(key="image_url"))


@good(
    "product-pages-back-and-forth",
    "list, item, back: the list page comes back 10 times between new items",
)
def _(t):
    listing = page(t, 12)
    for n in range(10):
        t.call("browser_click", {"ref": f"e{n + 30}"}, page(t, 5))
        t.call("browser_navigate_back", {}, listing)


@good("cart-plus-button-7", "quantity + clicked 7 times; the number moves")
def _(t):
    for n in range(7):
        t.call(
            "browser_click",
            {"element": "+", "ref": "e5"},
            f"- heading: Cart\n- spinbutton: {n + 2}\n- text: Total ${(n + 2) * 9}.00",
        )


# --- GOOD: data -----------------------------------------------------------------------------------

_family = "good: data"


@good("null-checks-of-25-tables", "25 count queries, each answers 0 in four lines")
def _(t):
    for _ in range(25):
        t.call(
            "run_sql",
            {"query": f"select count(*) from {t.word()} where id is null"},
            " count \n-------\n     0\n(1 row)",
        )


@good("null-checks-of-14-tables-by-query-tool", "the same by a tool whose name reads")
def _(t):
    for _ in range(14):
        t.call(
            "query_database",
            {"sql": f"select count(*) from {t.word()} where id is null"},
            " count \n-------\n     0\n(1 row)",
        )


@good("orphan-checks-of-10-tables", "ten different joins, no rows")
def _(t):
    for _ in range(10):
        t.call(
            "execute_query",
            {
                "sql": f"select a.id, a.name from {t.word()} a left join {t.word()} b on b.id = a.b where b.id is null"
            },
            "| id | name |\n|----|------|\n(0 rows)",
        )


@good("count-after-each-insert", "select count(*) grows by one after each insert")
def _(t):
    for n in range(15):
        t.call("execute_sql", {"sql": f"insert into t values ('{t.word()}')"}, "INSERT 0 1")
        t.call("execute_sql", {"sql": "select count(*) from t"}, f"count\n{n + 1}")


@good("random-samples-8", "order by random(): eight draws of five rows")
def _(t):
    for _ in range(8):
        t.call("run_query", {"sql": "select * from users order by random() limit 5"}, t.lines(5))


@good("health-of-20-hosts", "twenty numbered hosts, all healthy")
def _(t):
    for n in range(20):
        t.call("get_health", {"host": f"web-{n:02}"}, '{"status": "ok"}')


@good("health-of-20-hosts-by-curl", "the same with the shell")
def _(t):
    for n in range(20):
        t.call("bash", {"command": f"curl -s http://web-{n:02}/health"}, '{"status":"ok"}')


@good("partitions-of-24-months", "24 months checked, each says ok")
def _(t):
    for n in range(24):
        t.call(
            "check_partition", {"month": f"{2024 + n // 12}-{n % 12 + 1:02}"}, "ok: 0 missing rows"
        )


@good("free-rooms-on-12-dates-json", "12 dates, the same answer in four lines")
def _(t):
    for n in range(12):
        t.call(
            "check_availability",
            {"room": "A", "date": f"2026-05-{n + 1:02}"},
            '{\n  "available": false,\n  "reason": "booked"\n}',
        )
    t.call("check_availability", {"room": "A", "date": "2026-05-13"}, '{\n  "available": true\n}')


@good("calendar-of-22-days", "a month's working days, no events on any")
def _(t):
    for n in range(22):
        t.call("get_events", {"date": f"2026-06-{n + 1:02}"}, "No events.")


@good("validate-20-records", "another record each, pretty JSON: valid")
def _(t):
    for _ in range(20):
        t.call("validate_record", {"id": t.word()}, '{\n  "valid": true,\n  "errors": []\n}')


@good("paging-json-with-envelope", "30 pages; cursor, request id and rows in one JSON line")
def _(t):
    cur = None
    for _n in range(30):
        nxt = t.token(16)
        t.call(
            "list_customers",
            {"cursor": cur, "limit": 2},
            json.dumps(
                {
                    "object": "list",
                    "has_more": True,
                    "data": [t.word(), t.word()],
                    "next": nxt,
                    "request_id": f"req_{t.token()}",
                }
            ),
        )
        cur = nxt


@good(
    "python-cells-same-error-4-then-right", "four different fixes, the same KeyError, then it works"
)
def _(t):
    for _ in range(4):
        t.fails(
            "python",
            {"code": t.lines(3)},
            "Traceback (most recent call last):\n  File \"<stdin>\", line 3\nKeyError: 'price'",
        )
    t.call("python", {"code": t.lines(3)}, t.lines(3))


@good("schema-of-15-tables-equal-columns", "15 partitions with equal columns")
def _(t):
    for _ in range(15):
        t.call(
            "describe_table",
            {"table": f"events_{t.word()}"},
            "id bigint\nts timestamp\npayload jsonb",
        )


@good("poll-a-materialised-view-refresh", "count(*) moves slowly: each value three times, 24 polls")
def _(t):
    for v in range(8):
        for _ in range(3):
            t.call("query", {"sql": "select count(*) from mv"}, f"count\n{v * 1000}")


# --- GOOD: research -------------------------------------------------------------------------------

_family = "good: research"


@good("search-8-vain-then-hit", "eight different queries in vain, the ninth hits")
def _(t):
    for _ in range(8):
        t.call("web_search", {"query": t.words(3)}, "No results found.")
    t.call("web_search", {"query": t.words(2)}, t.lines(6))


@good(
    "search-10-vain-in-json-then-hit", "ten queries, an empty result with request id and duration"
)
def _(t):
    for _ in range(10):
        t.call(
            "search_papers",
            {"query": t.words(3)},
            json.dumps(
                {"results": [], "took_ms": t.random.randint(3, 90), "request_id": t.clock("uuid")}
            ),
        )
    t.call("search_papers", {"query": t.words(2)}, t.lines(6))


@good(
    "search-10-vain-with-a-three-line-hint-then-hit",
    "ten queries, each answered by the same three lines of advice",
)
def _(t):
    for _ in range(10):
        t.call(
            "search_docs",
            {"query": t.words(3)},
            "No results.\nTips: use fewer words.\nCheck the spelling.",
        )
    t.call("search_docs", {"query": t.words(2)}, t.lines(6))


@good("fetch-6-dead-urls-then-one-works", "six URLs are gone, the seventh works")
def _(t):
    for _ in range(6):
        t.fails("fetch_url", {"url": f"https://{t.word()}.org/{t.word()}"}, "HTTP 404 Not Found")
    t.call("fetch_url", {"url": f"https://{t.word()}.org"}, t.lines(9))


@good("link-checker-30-links", "a link check: two of three links are dead, in random order")
def _(t):
    for n in range(30):
        if n % 3:
            t.fails(
                "fetch_url", {"url": f"https://{t.word()}.org/{t.word()}"}, "HTTP 404 Not Found"
            )
        else:
            t.call("fetch_url", {"url": f"https://{t.word()}.org/{t.word()}"}, "200 OK")


@good("link-checker-head-20", "HEAD requests answer 200 OK with a date")
def _(t):
    for _ in range(20):
        t.call(
            "http_head",
            {"url": f"https://{t.word()}.org"},
            f"HTTP/1.1 200 OK\nDate: Mon, 02 Mar 2026 10:{t.random.randint(10, 59)}:11 GMT\nServer: nginx",
        )


@good("searches-with-overlapping-results", "five results each, one of them new")
def _(t):
    old = [t.words(4) for _ in range(4)]
    for _ in range(15):
        t.call("web_search", {"query": t.words(3)}, "\n".join([*old, t.words(4)]))


@good(
    "search-think-search", "a think call with a constant receipt between searches that bring little"
)
def _(t):
    for n in range(14):
        t.call("think", {"thought": t.words(9)}, "Thought recorded.\nContinue.")
        t.call("web_search", {"query": t.words(3)}, "No results found." if n % 3 else t.lines(3))


@good("search-fetch-with-some-failing", "search, fetch fails, search, fetch works")
def _(t):
    for n in range(12):
        t.call("search", {"q": t.words(3)}, f"1. {t.words(4)}")
        if n % 2:
            t.fails("fetch", {"url": t.word()}, "403 Forbidden")
        else:
            t.call("fetch", {"url": t.word()}, t.lines(5))


@good(
    "paywalled-fetches-9-with-searches",
    "nine fetches refused, but searches between bring new lines",
)
def _(t):
    for _ in range(9):
        t.call("search", {"q": t.words(3)}, t.lines(4))
        t.fails("fetch", {"url": t.word()}, "403 Forbidden: subscription required")


@good("wiki-lookup-next-occurrence-8", "Lookup of one word gives the next place each time")
def _(t):
    for n in range(8):
        t.call("Lookup", {"keyword": "capital"}, f"(Result {n + 1} / 8) {t.words(7)}")


@good("citations-check-12", "12 DOIs resolved, the registry's answer has the same shape")
def _(t):
    for n in range(12):
        t.call(
            "resolve_doi",
            {"doi": f"10.1000/{n + 100}"},
            json.dumps({"status": "ok", "type": "journal-article", "retracted": False}),
        )


# --- GOOD: support, records, mails ----------------------------------------------------------------

_family = "good: support, records, mails"


@good("order-looked-up-after-each-update", "get_order after each update: one field moves")
def _(t):
    for n in range(8):
        t.call("update_order", {"id": "A1", "item": n, "qty": 2}, '{"ok": true}')
        t.call(
            "get_order",
            {"id": "A1"},
            json.dumps({"id": "A1", "items": {str(k): 2 for k in range(n + 1)}}),
        )


@good(
    "order-looked-up-after-each-update-unchanged-view",
    "the view of the order does not show what was updated",
)
def _(t):
    for _n in range(8):
        t.call("add_note", {"order": "A1", "note": t.words(4)}, '{"ok": true}')
        t.call("get_order", {"id": "A1"}, "order A1\nstatus open\n2 items")


@good(
    "customer-turns-with-the-same-two-lookups",
    "seven turns of the user, profile and order are looked up in each",
)
def _(t):
    for _ in range(7):
        t.human()
        t.call("get_customer", {"id": "c9"}, "name Ann\nplan gold")
        t.call("get_order", {"id": "A1"}, "order A1\nstatus open")
        t.call("search_faq", {"q": t.words(2)}, t.lines(2))


@good("twenty-mails", "send_email to 20 people, queued with an id")
def _(t):
    for _ in range(20):
        t.call(
            "send_email",
            {"to": f"{t.word()}@x.org", "subject": "Invoice", "body": "Dear customer"},
            json.dumps({"status": "queued", "id": t.clock("uuid")}),
        )


@good(
    "thirty-records-with-envelope",
    "create_record 30 times, created_at and request_id in the answer",
)
def _(t):
    for _ in range(30):
        t.call(
            "create_record",
            {"table": "people", "name": t.word()},
            json.dumps({"ok": True, "created_at": t.clock("iso"), "request_id": t.token()}),
        )


@good("thirty-labels-numbered", "the same label on 30 numbered issues")
def _(t):
    for n in range(30):
        t.call("mcp__github__add_label", {"issue": 1000 + n, "label": "stale"}, '{"ok": true}')


@good("refund-12-items", "12 items of one order, equal receipts")
def _(t):
    for n in range(12):
        t.call(
            "refund_item", {"order": "A1", "line": n}, "Refund issued.\nThe customer was notified."
        )


@good("triage-queue-shrinks", "list_tickets after each reply: all lines were seen, one fewer")
def _(t):
    q = [f"#{t.random.randint(100, 999)} {t.words(3)}" for _ in range(14)]
    while q:
        t.call("list_tickets", {"status": "open"}, "\n".join(q))
        t.call("reply_ticket", {"id": q.pop().split()[0], "text": t.words(6)}, "Reply sent.")


@good("triage-queue-shrinks-in-place", "close_next_ticket without arguments, the list shrinks")
def _(t):
    q = [f"#{t.random.randint(100, 999)} {t.words(3)}" for _ in range(9)]
    while q:
        t.call("list_tickets", {"status": "open"}, "\n".join(q))
        t.call("archive_top_ticket", {}, f"archived {q.pop(0)}")


@good("identity-checks-3-fail", "three wrong addresses, then the right one")
def _(t):
    for _ in range(3):
        t.fails("find_user_by_email", {"email": f"{t.word()}@x.org"}, "Error: user not found")
        t.human()
    t.call("find_user_by_email", {"email": f"{t.word()}@x.org"}, "user 12")


@good("not-found-8-skus", "user pasted 8 SKUs, none exists; error each")
def _(t):
    for _ in range(7):
        t.fails("get_product", {"sku": t.word().upper()}, "Error: product not found")
    t.call("get_product", {"sku": t.word().upper()}, "lamp\n12 EUR")


@good("unfound-invoices-with-trace", "10 numbered invoices, each not found, with a trace id")
def _(t):
    for n in range(10):
        t.call(
            "get_invoice", {"number": 2000 + n}, json.dumps({"found": False, "trace_id": t.hex(32)})
        )
    t.call("reply", {"text": t.words(5)}, "sent")


@good("crm-upsert-25-parallel", "batches of five upserts, receipts with etags")
def _(t):
    for _ in range(8):
        t.batch(
            *[
                (
                    "upsert_contact",
                    {"name": t.word()},
                    json.dumps({"result": "updated", "etag": f'W/"{t.hex(8)}"'}),
                )
                for _ in range(5)
            ]
        )


@good("lookup-before-each-write", "get_schema (same) before each of 12 inserts")
def _(t):
    for _ in range(12):
        t.call("get_schema", {"table": "people"}, "id int\nname text\nage int")
        t.call("insert_row", {"name": t.word()}, "inserted")


@good("translate-and-save-20-languages", "Chinese receipts of two lines")
def _(t):
    for _ in range(20):
        t.call(
            "保存翻译", {"key": t.word(), "语言": "zh", "text": t.words(3)}, "操作成功\n状态：正常"
        )


@good("japanese-lookups", "商品検索 of 14 words, each not in stock, one line")
def _(t):
    for _ in range(14):
        t.call("商品検索", {"商品": t.word()}, "在庫がありません。")


@good("turkish-reading-15", "dosya_oku (read file) of 15 files, new lines")
def _(t):
    for _ in range(15):
        t.call("dosya_oku", {"yol": t.path()}, t.lines(4))


# --- GOOD: devices --------------------------------------------------------------------------------

_family = "good: devices"


@good("thermostat-warms-up-slowly", "temperature read after waits: each value twice or three times")
def _(t):
    t.call("set_temperature", {"target": 21}, "ok")
    for v in range(8):
        for _ in range(t.random.choice((2, 3))):
            t.call("wait", {"seconds": 60}, "Waited 60 seconds.")
            t.call("get_temperature", {"room": "living"}, f"{18 + v * 0.4:.1f} °C")


@good("door-checked-between-lights", "the door's state is the same after each different light")
def _(t):
    for _ in range(14):
        t.call("switch_light", {"name": t.word(), "on": False}, "ok")
        t.call("get_sensor", {"id": "front-door"}, "closed")


@good("dim-in-12-steps", "another level each, ok")
def _(t):
    for n in range(12):
        t.call("set_brightness", {"light": "desk", "level": 100 - n * 5}, "ok")


@good("volume-up-8", "the same button, the answer says the new volume")
def _(t):
    for n in range(8):
        t.call("press_button", {"button": "volume_up"}, f"Volume: {20 + n}")


@good("robot-12-steps-forward", "the same step, another place each time")
def _(t):
    for n in range(12):
        t.call("move", {"direction": "forward"}, f"Moved. Position (3, {n + 1})")


@good("robot-turns-and-steps-40", "few commands in a mixed order, the place moves")
def _(t):
    for x, n in enumerate(range(40), 1):
        t.call("move" if n % 4 else "turn", {"d": t.random.choice("ab")}, f"pos {x // 3},{x}")


@good("camera-frames-12", "get_frame while waiting for the courier: other pictures")
def _(t):
    for _ in range(12):
        t.call("get_camera_frame", {"camera": "door"}, t.image())
        t.call("wait", {"seconds": 10}, "ok")


# --- GOOD: polling, waiting, retrying -------------------------------------------------------------

_family = "good: polling, waiting, retrying"


@good("job-queued-running-done-with-timestamps", "4 x QUEUED, 4 x RUNNING, done; each with a time")
def _(t):
    for s in ["QUEUED"] * 4 + ["RUNNING"] * 4 + ["SUCCEEDED"]:
        t.call(
            "get_job",
            {"id": "j1"},
            json.dumps({"id": "j1", "state": s, "polled_at": t.clock("iso")}),
        )


@good(
    "deployment-in-progress-11-with-request-ids", "11 polls, only the request id changes, then done"
)
def _(t):
    for _ in range(11):
        t.call(
            "get_deployment",
            {"id": "d1"},
            json.dumps({"status": "in_progress", "request_id": t.clock("uuid")}),
        )
        t.call("sleep", {"seconds": 30}, "")
    t.call(
        "get_deployment",
        {"id": "d1"},
        json.dumps({"status": "ready", "request_id": t.clock("uuid")}),
    )


@good("eta-falls-20", "nothing but the ETA falls")
def _(t):
    for n in range(20):
        s = 1200 - n * 55
        t.call("check_build", {"id": 3}, f"building image (ETA 00:{s // 60:02}:{s % 60:02})")


@good("eta-in-words-falls-20", "remaining time in words falls")
def _(t):
    for n in range(20):
        t.call(
            "get_export_status",
            {"id": 3},
            json.dumps({"state": "running", "remaining": f"{40 - 2 * n} minutes"}),
        )


@good("progress-bar-moves-slowly", "a drawn bar, each value twice")
def _(t):
    for n in range(12):
        for _ in range(2):
            t.call("bash", {"command": "tail -1 train.log"}, f"[{'#' * n}{'.' * (12 - n)}]")
            t.call("bash", {"command": "sleep 60"}, "")


@good("gh-checks-14-polls", "five checks turn from pending to pass one by one; elapsed times run")
def _(t):
    names = ["lint", "unit", "e2e", "docs", "build"]
    for n in range(14):
        t.call(
            "bash",
            {"command": "gh pr checks 12"},
            "\n".join(
                f"{c}\t{'pass' if n > 2 * i + 2 else 'pending'}\t{n}m{t.random.randint(1, 59)}s"
                for i, c in enumerate(names)
            ),
            "error",
        )


@good(
    "sleep-and-view-7-equal",
    "sleep 60 && gh run view: 7 times in_progress, then done. The command itself waits",
)
def _(t):
    for _ in range(7):
        t.call(
            "bash",
            {"command": "sleep 60 && gh run view 77 --json status"},
            '{"status":"in_progress"}',
        )
    t.call(
        "bash", {"command": "sleep 60 && gh run view 77 --json status"}, '{"status":"completed"}'
    )


@good("sleep-and-tail-each-line-4-times", "sleep 30; tail -1 log: each line stays for four polls")
def _(t):
    for _ in range(6):
        line = t.words(4)
        for _ in range(4):
            t.call("bash", {"command": "sleep 30; tail -n 1 build.log"}, line)


@good("sleep-tool-and-status-4-times", "status, sleep: four equal ones, then done")
def _(t):
    for _ in range(4):
        t.call("get_run", {"id": 1}, "in_progress")
        t.call("sleep", {"seconds": 60}, "")
    t.call("get_run", {"id": 1}, "completed")


@good("bash-output-some-empty", "BashOutput: three empty ones between lines, 20 polls")
def _(t):
    for _ in range(5):
        for _ in range(3):
            t.call("BashOutput", {"bash_id": "b1"}, "")
        t.call("BashOutput", {"bash_id": "b1"}, t.lines(2))


@good("wait-for-task-6-times", "wait_for_task blocks a minute and says still running, six times")
def _(t):
    for _ in range(6):
        t.call("wait_for_task", {"id": "t1", "timeout": 60}, "Task t1 is still running.")
    t.call("wait_for_task", {"id": "t1", "timeout": 60}, t.lines(4))


@good("metrics-watch-40", "cpu moves in each answer")
def _(t):
    for _ in range(40):
        t.call(
            "get_metrics",
            {"host": "db"},
            json.dumps({"cpu": round(t.random.random() * 100, 1), "ts": t.clock("iso")}),
        )


@good("inbox-watch-with-quiet-runs", "three empty looks, then a message, twelve times")
def _(t):
    for _ in range(12):
        for _ in range(3):
            t.call("check_inbox", {}, "No new messages.")
        t.call("check_inbox", {}, f"1 new message: {t.words(4)}")
        t.call("reply", {"text": t.words(4)}, "sent")


@good("kubectl-pods-10-polls", "ages run, states change at the 4th and the 8th poll")
def _(t):
    for n in range(10):
        s = "Pending" if n < 3 else "ContainerCreating" if n < 7 else "Running"
        t.call(
            "bash",
            {"command": "kubectl get pods"},
            f"NAME    READY   STATUS    RESTARTS   AGE\nweb-1   0/1     {s}   0   {n * 7 + 3}s",
        )


@good("rollout-status-12", "1 of 4, 2 of 4, ... each three times")
def _(t):
    for v in range(4):
        for _ in range(3):
            t.call(
                "bash",
                {"command": "kubectl rollout status deploy/web --timeout=30s"},
                f"Waiting for deployment: {v} of 4 updated replicas are available...",
                "error",
            )


@good("training-loss-15-polls", "the loss falls, step counter and time run")
def _(t):
    for n in range(15):
        t.call(
            "bash",
            {"command": "tail -n 1 train.log"},
            f"step {n * 100} loss {2 / (n + 1):.4f} ({n * 31}s)",
        )


@good("rate-limits-then-success-6-requests", "each of six requests is limited twice, then works")
def _(t):
    for _ in range(6):
        a = {"url": t.word()}
        for _ in range(2):
            t.fails("api_get", a, f"429 Too Many Requests, retry after {t.random.randint(1, 30)}s")
        t.call("api_get", a, t.lines(3))


@good("rate-limit-4-times-with-growing-sleeps", "back-off 1, 2, 4, 8 seconds")
def _(t):
    for n in range(4):
        t.fails("create_invoice", {"id": 7}, "429 Too Many Requests")
        t.call("sleep", {"seconds": 2**n}, f"Slept {2**n}s")
    t.call("create_invoice", {"id": 7}, "created")


@good("token-expires-8-times", "401, refresh_token (same receipt), the call again, works")
def _(t):
    for _ in range(8):
        a = {"id": t.word()}
        t.fails("get_account", a, "401 token expired")
        t.call("refresh_token", {}, "Token refreshed.")
        t.call("get_account", a, t.lines(3))


@good("pip-flakes-3-times", "a network error thrice, then installed")
def _(t):
    for _ in range(3):
        t.fails(
            "bash",
            {"command": "pip install torch"},
            "ReadTimeoutError: HTTPSConnectionPool(host='pypi.org', port=443)\nERROR: could not fetch",
        )
    t.call("bash", {"command": "pip install torch"}, t.lines(2))


@good(
    "parallel-with-one-limited-each",
    "of five requests one is limited and repeated in the next batch",
)
def _(t):
    again = t.word()
    for _ in range(10):
        nxt = t.word()
        t.batch(
            ("fetch", {"u": again}, t.lines(2)),
            *[("fetch", {"u": t.word()}, t.lines(2)) for _ in range(3)],
            ("fetch", {"u": nxt}, "429", "error"),
        )
        again = nxt


# --- GOOD: think, plan, memory, sub-agents, stateful sources --------------------------------------

_family = "good: think, plan, memory, sub-agents, stateful sources"


@good(
    "todos-whole-list-each-time",
    "write_todos with the whole list, one state moves; one-line work between",
)
def _(t):
    todos = [{"content": t.words(3), "status": "pending"} for _ in range(10)]
    for n in range(10):
        todos[n]["status"] = "completed"
        now = json.loads(json.dumps(todos))
        t.call("write_todos", {"todos": now}, f"Updated todo list to {now}")
        t.call("bash", {"command": f"touch {t.word()}"}, "")


@good("todowrite-long-constant-receipt", "TodoWrite answers the same three lines")
def _(t):
    for n in range(14):
        t.call(
            "TodoWrite",
            {"todos": [{"content": "a", "status": str(n)}]},
            "Todos have been modified successfully.\nEnsure that you continue to use the todo list.\nPlease proceed.",
        )
        t.call("Read", {"file_path": t.path()}, t.lines(2))


@good("sequential-thinking-10", "ten thoughts in a row, the tool counts them")
def _(t):
    for n in range(1, 11):
        t.call(
            "sequentialthinking",
            {
                "thought": t.words(12),
                "thoughtNumber": n,
                "totalThoughts": 10,
                "nextThoughtNeeded": n < 10,
            },
            json.dumps(
                {
                    "thoughtNumber": n,
                    "totalThoughts": 10,
                    "nextThoughtNeeded": n < 10,
                    "branches": [],
                    "thoughtHistoryLength": n,
                },
                indent=2,
            ),
        )


@good("memory-searches-10-empty", "ten different questions to an empty memory")
def _(t):
    for _ in range(10):
        t.call("memory_search", {"query": t.words(3)}, "[]")


@good("memory-saves-20", "twenty facts, memory saved")
def _(t):
    for _ in range(20):
        t.call("save_memory", {"text": t.words(6)}, "Memory saved.")


@good("memory-read-before-each-step", "the same memory file before each of 10 steps")
def _(t):
    m = t.lines(5)
    for _ in range(10):
        t.call("memory_view", {"path": "/memories/progress.md"}, m)
        t.call("bash", {"command": f"python step.py {t.word()}"}, "ok")


@good("three-opinions-of-one-sub-agent", "best of three: the same task thrice, other answers")
def _(t):
    for _ in range(3):
        t.call("task", {"prompt": "Review the diff", "subagent": "reviewer"}, t.lines(4))


@good("three-opinions-in-one-batch", "the same in parallel")
def _(t):
    t.batch(
        *[
            ("task", {"prompt": "Review the diff", "subagent": "reviewer"}, t.lines(4))
            for _ in range(3)
        ]
    )
    t.call("edit", {"p": t.word()}, "ok")


@good(
    "review-after-each-fix",
    "the reviewer with the same prompt after each fix: other findings, 7 rounds",
)
def _(t):
    for _ in range(7):
        t.call("task", {"prompt": "Review the diff", "subagent": "reviewer"}, t.lines(4))
        t.call("edit", {"p": t.word()}, "ok")


@good("subagents-nothing-found-10", "ten modules audited, each two equal lines")
def _(t):
    for _ in range(10):
        t.call(
            "task", {"prompt": f"Audit {t.path()}"}, "I've completed the audit.\nNo issues found."
        )


@good("turn-page-16", "a stateful reader: turn_page without arguments")
def _(t):
    for _ in range(16):
        t.call("turn_page", {}, t.lines(10))


@good("read-next-chunk-16", "read_next_chunk, new lines each time")
def _(t):
    for _ in range(16):
        t.call("read_next_chunk", {"handle": "h1"}, t.lines(10))


@good("next-page-16", "next_page, new lines each time")
def _(t):
    for _ in range(16):
        t.call("next_page", {}, t.lines(10))


@good("pop-queue-14", "pop another item each time, noted in the plan only")
def _(t):
    for _ in range(14):
        t.call("pop_queue", {"queue": "inbox"}, json.dumps({"item": t.words(3)}))


@good("receive-messages-14", "SQS: receive another message each time")
def _(t):
    for _ in range(14):
        t.call(
            "receive_message",
            {"queue": "q"},
            json.dumps({"id": t.clock("uuid"), "body": t.words(3)}),
        )


@good(
    "flashcards-16",
    "draw_card: another card each time; the user is asked in text by the same agent",
)
def _(t):
    for _ in range(16):
        t.call("draw_card", {}, f"{t.word()} of {t.word()}")


@good("dice-12", "twelve rolls for six abilities")
def _(t):
    for _ in range(12):
        t.call("roll_dice", {"sides": 20}, str(t.random.randint(1, 20)))


@good("dice-4d6-six-times", "4d6, six times, in detail")
def _(t):
    for _ in range(6):
        t.call("roll", {"dice": "4d6"}, str([t.random.randint(1, 6) for _ in range(4)]))


@good("uuids-for-8-rows", "generate_uuid, insert with it, eight times")
def _(t):
    for _ in range(8):
        u = t.clock("uuid")
        t.call("generate_uuid", {}, u)
        t.call("insert_row", {"id": u, "name": t.word()}, "ok")


@good("uuids-6-in-a-row", "six ids are made before they are used")
def _(t):
    for _ in range(6):
        t.call("generate_uuid", {}, t.clock("uuid"))
    t.call("write_file", {"p": t.word()}, "ok")


@good("clock-between-different-work", "get_current_time between 12 different steps")
def _(t):
    for _ in range(12):
        t.call("get_current_time", {}, t.clock("iso"))
        t.call("log_time", {"project": t.word()}, "ok")


@good("approval-before-each-step", "ask_user 'Proceed?' yes, then another deletion, 10 times")
def _(t):
    for _ in range(10):
        t.call("ask_user", {"question": "Proceed with the next one?"}, "yes")
        t.call("delete_branch", {"name": t.word()}, "deleted")


@good("interview-12-questions", "ask_user 12 other questions, short equal answers")
def _(t):
    for _ in range(12):
        t.call("ask_user", {"question": t.words(5)}, t.random.choice(["yes", "no"]))


@good("quiz-tool-15", "submit_answer to 15 questions: Correct!")
def _(t):
    for n in range(15):
        t.call("submit_answer", {"question": n, "answer": t.random.choice("ABCD")}, "Correct!")


@good("game-guess-number-10", "guesses get higher/lower")
def _(t):
    for n in range(10):
        t.call("guess", {"n": 512 >> n}, t.random.choice(["higher", "lower"]))


@good("user-turn-go-on-9-times", "the user says go on; one new file per turn and the same status")
def _(t):
    for _ in range(9):
        t.human()
        t.call("bash", {"command": "git status --short"}, " M a.py")
        t.call("edit", {"p": t.word()}, "ok")


def _(t):
    r = t.random
    fails = t.lines(4)
    for _ in range(200):
        k = r.randrange(6)
        if k == 0:
            t.call("read_file", {"path": t.path()}, t.lines(5))
        elif k == 1:
            t.call("edit_file", {"path": t.path(), "new": t.words(3)}, "ok")
        elif k == 2:
            t.call("run_tests", {}, f"{fails}\n1 failed in {r.random():.2f}s", "error")
        elif k == 3:
            t.call("bash", {"command": "git status --short"}, " M a.py")
        elif k == 4:
            t.call("think", {"thought": t.words(6)}, "")
        else:
            t.call("grep", {"q": t.word()}, "No matches found")


# --- LOOPS ----------------------------------------------------------------------------------------

_family = "loops"


@loop(
    "envelope-request-id-read", 20, "the same lookup, the body never changes, the envelope's ids do"
)
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "get_order",
                {"id": "A1"},
                json.dumps(
                    {
                        "data": {"id": "A1", "status": "open"},
                        "meta": {"request_id": f"req_{t.token(14)}", "ts": int(t.clock("epoch"))},
                    }
                ),
            )
        ],
    )


@loop("envelope-uuid-read", 20, "the same with uuid and time only")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "get_order",
                {"id": "A1"},
                json.dumps(
                    {
                        "data": {"status": "open"},
                        "request_id": t.clock("uuid"),
                        "at": t.clock("iso"),
                    }
                ),
            )
        ],
    )


@loop("envelope-etag-change", 12, "the same update accepted again and again with a new ETag")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "update_ticket",
                {"id": 4, "state": "open"},
                json.dumps({"ok": True, "etag": f'W/"{t.hex(16)}"'}),
            )
        ],
    )


@loop("envelope-two-reads", 30, "two lookups alternate, hex trace ids change")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "get_order", {"id": "A1"}, json.dumps({"status": "open", "trace_id": t.hex(32)})
            ),
            lambda: t.call(
                "get_user", {"id": "u1"}, json.dumps({"name": "Ann", "trace_id": t.hex(32)})
            ),
        ],
    )


@loop("envelope-read-and-write", 24, "lookup and the same update alternate, ids change")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "get_order", {"id": "A1"}, json.dumps({"status": "open", "request_id": t.token(16)})
            ),
            lambda: t.call(
                "update_order",
                {"id": "A1", "status": "open"},
                json.dumps({"ok": True, "request_id": t.token(16)}),
            ),
        ],
    )


@loop("error-with-hex-trace-same-args", 10, "500 with a trace id in hex")
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "create_invoice", {"id": 7}, f"Error 500: internal error (trace {t.hex(32)})"
            )
        ],
    )


@loop("error-with-hex-trace-new-args", 12, "500 with a trace id in hex, the arguments vary")
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "create_invoice",
                {"memo": t.words(3)},
                f"Error 500: internal error (trace {t.hex(32)})",
            )
        ],
    )


@loop(
    "error-with-b62-request-id-new-args", 14, "request id of letters and digits, the arguments vary"
)
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "create_invoice",
                {"memo": t.words(3)},
                json.dumps(
                    {
                        "error": {"type": "invalid_request", "message": "amount is required"},
                        "request_id": f"req_{t.token(20)}",
                    }
                ),
            )
        ],
    )


@loop("error-with-temp-file-names", 14, "script in a temp file with a random name fails alike")
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "run_python",
                {"code": t.words(4)},
                f"  File \"/tmp/tmp{t.token(8)}/script.py\", line {t.random.randint(1, 30)}\nModuleNotFoundError: No module named 'pandas'",
            )
        ],
    )


@loop(
    "traceback-echoes-the-new-code", 18, "ever new code, the last line of the traceback is the same"
)
def _(t):
    def s():
        c = t.words(4)
        t.fails(
            "python",
            {"code": c},
            f"Traceback (most recent call last):\n  File \"<stdin>\", line {t.random.randint(1, 9)}, in <module>\n    {c}\nModuleNotFoundError: No module named 'pandas'",
        )

    rotate(t, [s])


@loop(
    "sql-error-echoes-the-query",
    18,
    "ever new queries, the same missing column; the error quotes the query",
)
def _(t):
    def s():
        c = t.words(3)
        t.fails(
            "run_sql",
            {"sql": c},
            f'UndefinedColumn: column "price" does not exist\nLINE 1: {c}\n        ^',
        )

    rotate(t, [s])


@loop("pydantic-error-echoes-the-input", 16, "a required field is missing, the input is echoed")
def _(t):
    def s():
        w = t.word()
        t.fails(
            "create_event",
            {"title": w},
            f"1 validation error for Event\nstart\n  Field required [type=missing, input_value={{'title': '{w}'}}, input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.10/v/missing",
        )

    rotate(t, [s])


@loop("typos-of-the-argument-name", 18, "wrong argument names that vary, the error names them")
def _(t):
    def s():
        w = "ci" + t.word()
        t.fails(
            "get_weather",
            {w: "Rome"},
            f"TypeError: get_weather() got an unexpected keyword argument '{w}'",
        )

    rotate(t, [s])


@loop("three-missing-tools-in-turn", 16, "tools that do not exist, round and round")
def _(t):
    names = cycle(["python_repl", "execute_python", "code_interpreter"])
    rotate(
        t,
        [
            lambda: (
                n := next(names),
                t.fails(
                    n,
                    {"code": t.words(2)},
                    f"Error: {n} is not a valid tool, try one of [search, read_file].",
                ),
            )
        ],
    )


@loop("four-error-texts-at-random", 24, "ever new arguments, one of four errors")
def _(t):
    texts = [t.words(5) for _ in range(4)]
    rotate(t, [lambda: t.fails("deploy", {"config": t.words(3)}, t.random.choice(texts))])


@loop(
    "permission-denied-other-commands", 12, "the person denies every command, the agent rewords it"
)
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "Bash",
                {"command": t.words(3)},
                "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            )
        ],
    )


@loop(
    "blocked-by-policy-with-incident",
    10,
    "the same call blocked, an incident id in the answer, told as success",
)
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "send_payment",
                {"to": "x"},
                f"Action blocked by policy POL-12 (incident {t.hex(8)})",
            )
        ],
    )


@loop("pip-versions-not-found", 14, "pip install of ever other versions, none exists")
def _(t):
    v = count(1)

    def s():
        x = f"1.{next(v)}.0"
        t.fails(
            "bash",
            {"command": f"pip install foo=={x}"},
            f"ERROR: Could not find a version that satisfies the requirement foo=={x}\nERROR: No matching distribution found for foo=={x}",
        )

    rotate(t, [s])


@loop(
    "npm-eresolve-and-rm",
    16,
    "rm -rf node_modules, npm install fails; the log's name carries the time",
)
def _(t):
    rotate(
        t,
        [
            lambda: t.call("bash", {"command": "rm -rf node_modules"}, ""),
            lambda: t.fails(
                "bash",
                {"command": "npm install"},
                f"npm ERR! code ERESOLVE\nnpm ERR! unable to resolve dependency tree\nnpm ERR! A complete log of this run can be found in: ~/.npm/_logs/2026-03-02T{t.random.randint(10, 23)}_{t.random.randint(10, 59)}_{t.random.randint(10, 59)}_{t.random.randint(100, 999)}Z-debug-0.log",
            ),
        ],
    )


@loop(
    "docker-build-and-cat", 18, "docker build fails alike (times, digests), cat Dockerfile between"
)
def _(t):
    d = "FROM debian\nRUN apt-get install foo"
    rotate(
        t,
        [
            lambda: t.fails(
                "bash",
                {"command": "docker build ."},
                f"#5 [2/2] RUN apt-get install foo\n#5 {t.random.random():.3f} E: Unable to locate package foo\n#5 sha256:{t.hex(64)} done\n------\nERROR: failed to solve",
            ),
            lambda: t.call("bash", {"command": "cat Dockerfile"}, d),
        ],
    )


@loop(
    "write-same-file-and-hypothesis-test",
    20,
    "the same content written, the test fails with another blob each time",
)
def _(t):
    w = {"path": "a.py", "content": t.lines(3)}
    rotate(
        t,
        [
            lambda: t.call("write_file", w, "File written."),
            lambda: t.fails(
                "run_tests",
                {},
                f"FAILED test_a.py::test_sort\nFalsifying example: test_sort(x=[{t.random.randint(0, 9)}, {t.random.randint(0, 9)}])\nYou can reproduce this example by adding @reproduce_failure('6.1', b'{t.token(20)}')\n1 failed in {t.random.random():.2f}s",
            ),
        ],
    )


@loop("xdist-lines-in-another-order", 12, "the same test lines in another order, no edit between")
def _(t):
    ls = [f"[gw{i}] FAILED tests/test_{t.word()}.py" for i in range(6)]
    rotate(
        t, [lambda: t.fails("bash", {"command": "pytest -n 4"}, "\n".join(t.random.sample(ls, 6)))]
    )


@loop("git-pull-push-rejected", 12, "pull says up to date, push is rejected")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("bash", {"command": "git pull"}, "Already up to date."),
            lambda: t.fails(
                "bash",
                {"command": "git push"},
                "! [rejected] main -> main (protected branch)\nerror: failed to push some refs",
            ),
        ],
    )


@loop("git-add-commit-status", 12, "nothing to commit, round and round")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("bash", {"command": "git add -A"}, ""),
            lambda: t.fails(
                "bash",
                {"command": "git commit -m 'fix'"},
                "On branch main\nnothing to commit, working tree clean",
            ),
            lambda: t.call(
                "bash",
                {"command": "git status"},
                "On branch main\nnothing to commit, working tree clean",
            ),
        ],
    )


@loop("stash-test-pop-test", 12, "stash, test, pop, test, with nothing edited")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "bash",
                {"command": "git stash"},
                "Saved working directory and index state WIP on main: 1a2b3c4 x",
            ),
            lambda: t.call(
                "bash", {"command": "pytest -q"}, f"2 failed, 10 passed in {t.random.random():.2f}s"
            ),
            lambda: t.call(
                "bash",
                {"command": "git stash pop"},
                f"On branch main\nDropped refs/stash@{{0}} ({t.hex(40)})",
            ),
            lambda: t.call(
                "bash", {"command": "pytest -q"}, f"1 failed, 11 passed in {t.random.random():.2f}s"
            ),
        ],
    )


@loop("formatters-at-war", 10, "two formatters undo each other")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "bash", {"command": "black ."}, "reformatted a.py\nAll done!\n1 file reformatted."
            ),
            lambda: t.call("bash", {"command": "yapf -i a.py"}, ""),
        ],
    )


@loop("same-patch-already-applied", 8, "the same patch, already applied")
def _(t):
    p = {"patch": t.lines(3)}
    rotate(t, [lambda: t.call("apply_patch", p, "Patch already applied, nothing to do.")])


@loop(
    "same-commit-with-new-message",
    20,
    "git commit --amend with ever new messages, nothing else changes",
)
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "bash",
                {"command": f"git commit --amend -m '{t.words(4)}'"},
                f"[main {t.hex(7)}] done\n 1 file changed, 2 insertions(+)",
            ),
            lambda: t.call(
                "bash",
                {"command": "git status"},
                "On branch main\nnothing to commit, working tree clean",
            ),
            lambda: t.call("bash", {"command": "cat a.py"}, "x = 1\ny = 2"),
        ],
    )


@loop(
    "snapshot-with-renumbered-refs",
    24,
    "two pages visited in turn, the refs of the elements are new each time",
)
def _(t):
    refs = count(10)

    def snap(words):
        return "\n".join(f'- link "{w}" [ref=e{next(refs)}]' for w in words)

    a, b = [t.word() for _ in range(6)], [t.word() for _ in range(6)]
    rotate(
        t,
        [
            lambda: t.call("browser_navigate", {"url": "https://a.org/x"}, snap(a)),
            lambda: t.call("browser_navigate", {"url": "https://a.org/y"}, snap(b)),
        ],
    )


@loop(
    "click-stale-ref-and-snapshot",
    24,
    "the click's ref is stale, a snapshot with new refs, the next is stale too",
)
def _(t):
    refs = count(10)
    words = [t.word() for _ in range(6)]

    def click():
        r = f"e{next(refs)}"
        t.fails(
            "browser_click",
            {"ref": r},
            f"Error: Ref {r} not found in the current page snapshot. Try capturing new snapshot.",
        )

    rotate(
        t,
        [
            click,
            lambda: t.call(
                "browser_snapshot",
                {},
                "\n".join(f'- button "{w}" [ref=e{next(refs)}]' for w in words),
            ),
        ],
    )


@loop("computer-click-same-picture", 12, "click at one place, the picture does not change")
def _(t):
    im = t.image()
    rotate(
        t,
        [
            lambda: t.call("computer", {"action": "left_click", "coordinate": [5, 5]}, ""),
            lambda: t.call("computer", {"action": "screenshot"}, im),
        ],
    )


@loop(
    "computer-clicks-near-one-place", 16, "clicks a few pixels apart, the picture does not change"
)
def _(t):
    im = t.image()
    rotate(
        t,
        [
            lambda: t.call(
                "computer",
                {
                    "action": "left_click",
                    "coordinate": [
                        500 + t.random.randint(-40, 40),
                        300 + t.random.randint(-40, 40),
                    ],
                },
                im,
            )
        ],
    )


@loop("scroll-at-the-end-of-the-page", 12, "scroll down, the page's end does not move")
def _(t):
    p = page(t)
    rotate(t, [lambda: t.call("browser_scroll", {"direction": "down"}, p)])


@loop("login-with-csrf", 14, "the same login, wrong password, the page has a new token each time")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "http_post",
                {"url": "/login", "user": "a", "password": "b"},
                f"<html><form>\n<input name=csrf value={t.hex(32)}>\n<p>Invalid password</p>\n</form></html>",
            )
        ],
    )


@loop(
    "login-page-and-post-with-csrf",
    30,
    "login page and login alternate, the arguments carry the token",
)
def _(t):
    box = {}

    def get():
        box["t"] = t.hex(32)
        t.call(
            "http_get",
            {"url": "/login"},
            f"<html><form>\n<input name=csrf value={box['t']}>\n</form></html>",
        )

    rotate(
        t,
        [
            get,
            lambda: t.call(
                "http_post",
                {"url": "/login", "csrf": box["t"], "password": "b"},
                "<html>\n<p>Invalid password</p>\n</html>",
            ),
        ],
    )


@loop("fetch-with-cache-buster", 16, "the same page with ?t=..., same content")
def _(t):
    p, n = t.lines(6), count(1_772_000_000, 7)
    rotate(t, [lambda: t.call("fetch_url", {"url": f"https://a.org/?t={next(n)}"}, p)])


@loop("fetch-with-other-user-agents", 10, "403 with ever other user agents")
def _(t):
    rotate(
        t,
        [
            lambda: t.fails(
                "fetch_url", {"url": "https://a.org", "user_agent": t.words(2)}, "403 Forbidden"
            )
        ],
    )


@loop(
    "page-beyond-the-end-echoes-its-number", 26, "empty pages, the answer repeats the page's number"
)
def _(t):
    n = count(91)
    rotate(
        t,
        [
            lambda: (
                p := next(n),
                t.call(
                    "list_items", {"page": p}, json.dumps({"page": p, "items": [], "total": 900})
                ),
            )
        ],
    )


@loop("pages-wrap-around", 16, "page numbers grow, the five pages come round again")
def _(t):
    pages = [t.lines(5) for _ in range(5)]
    n = count(0)
    for _ in range(5):
        p = next(n)
        t.call("list_items", {"page": p}, pages[p % 5])
    t.first_repeat()
    while t.goes_on():
        p = next(n)
        t.call("list_items", {"page": p}, pages[p % 5])


@loop("result-order-shuffles", 20, "the same search, one JSON line, the hits in another order")
def _(t):
    hits = [t.words(2) for _ in range(6)]
    rotate(
        t,
        [
            lambda: t.call(
                "search_products", {"q": "lamp"}, json.dumps({"hits": t.random.sample(hits, 6)})
            )
        ],
    )


@loop("search-vain-in-json-forever", 28, "ever new words, nothing found, the duration changes")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "search_papers",
                {"query": t.words(3)},
                json.dumps({"results": [], "took_ms": t.random.randint(3, 90)}),
            )
        ],
    )


@loop("search-vain-three-line-hint-forever", 18, "ever new words, the same three lines of advice")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "search_docs",
                {"query": t.words(3)},
                "No results.\nTips: use fewer words.\nCheck the spelling.",
            )
        ],
    )


@loop(
    "search-and-fetch-the-same-page-in-new-words",
    18,
    "new words, the same hits; the same page fetched",
)
def _(t):
    hits, pg = t.lines(4), t.lines(8)
    rotate(
        t,
        [
            lambda: t.call("web_search", {"query": t.words(3)}, hits),
            lambda: t.call("fetch", {"url": "a.org"}, pg),
        ],
    )


@loop("grep-context-grows", 26, "grep -C n with growing n: after the first no new line comes")
def _(t):
    text, n = t.lines(5), count(3)
    rotate(t, [lambda: t.call("bash", {"command": f"grep -C {next(n)} foo a.py"}, text)])


@loop("command-grows-each-time", 14, "the command gets one more && echo each time; same output")
def _(t):
    text, c = t.lines(3), ["make check"]

    def s():
        c.append("echo done")
        t.call("bash", {"command": " && ".join(c)}, text)

    rotate(t, [s])


@loop("lap-grows-by-one-look", 16, "A, AB, ABC ...: laps over the same files, one longer each")
def _(t):
    files = [(f"f{i}", t.lines(3)) for i in range(6)]
    for k in range(1, 7):
        for p, x in files[:k]:
            if k == 6:
                t.first_repeat()
            t.call("read_file", {"path": p}, x)
    while t.goes_on():
        for p, x in files:
            t.call("read_file", {"path": p}, x)


for _p in (9, 10, 11):

    @loop(f"period-{_p}-mixed-with-thoughts", 16, "a long rotation with a new thought at its end")
    def _(t, p=_p):
        steps = []
        for i in range(p - 1):
            a, x, nm = (
                {"v": t.word()},
                t.lines(2),
                ("read_file", "bash", "search", "update_issue")[i % 4],
            )
            steps.append(lambda a=a, x=x, nm=nm: t.call(nm, a, x))
        steps.append(lambda: t.call("think", {"thought": t.words(7)}, "Logged."))
        rotate(t, steps)


@loop("sequential-thinking-between", 22, "the same read between counted thoughts")
def _(t):
    n, x = count(1), t.lines(4)

    def think():
        k = next(n)
        t.call(
            "sequentialthinking",
            {"thought": t.words(8), "thoughtNumber": k, "totalThoughts": k + 3},
            json.dumps(
                {
                    "thoughtNumber": k,
                    "totalThoughts": k + 3,
                    "nextThoughtNeeded": True,
                    "branches": [],
                    "thoughtHistoryLength": k,
                },
                indent=2,
            ),
        )

    rotate(t, [lambda: t.call("read_file", {"path": "a"}, x), think])


@loop("todos-flip", 12, "one item goes in_progress, pending, in_progress ...")
def _(t):
    st = cycle(["in_progress", "pending"])
    rotate(
        t,
        [
            lambda: (
                s := next(st),
                t.call(
                    "write_todos",
                    {"todos": [{"content": "a", "status": s}]},
                    f"Updated todo list to [{{'content': 'a', 'status': '{s}'}}]",
                ),
            )
        ],
    )


@loop("todos-grow-with-the-same-read", 26, "a todo 'check again' is added, the same file read")
def _(t):
    todos, x = [], t.lines(4)

    def plan():
        todos.append("check again")
        t.call("write_todos", {"todos": list(todos)}, f"Updated todo list to {todos}")

    rotate(t, [plan, lambda: t.call("read_file", {"path": "a"}, x)])


@loop(
    "after-60-good-steps-noop-edit-and-test",
    10,
    "60 good steps, then an edit without effect and the same test",
)
def _(t):
    for _ in range(20):
        t.call("read_file", {"path": t.path()}, t.lines(4))
        t.call("edit_file", {"new": t.words(3)}, "ok")
        t.call("bash", {"command": t.words(2)}, t.lines(2))
    f = t.lines(3)
    rotate(
        t,
        [
            lambda: t.call(
                "edit_file",
                {"path": "a", "old": "x", "new": "x"},
                "No changes made: old and new are identical.",
            ),
            lambda: t.call("run_tests", {}, f"{f}\n1 failed in {t.random.random():.2f}s", "error"),
        ],
    )


@loop("after-60-good-steps-poll-stuck", 18, "60 good steps, then a job stuck in QUEUED with times")
def _(t):
    for _ in range(60):
        t.call("read_file", {"path": t.path()}, t.lines(4))
    rotate(
        t,
        [
            lambda: t.call(
                "get_job", {"id": "j"}, json.dumps({"state": "QUEUED", "polled_at": t.clock("iso")})
            )
        ],
    )


@loop("job-stuck-with-sleeps-and-times", 40, "QUEUED for ever, sleeps between, times in the answer")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "get_job",
                {"id": "j"},
                json.dumps(
                    {"state": "QUEUED", "polled_at": t.clock("iso"), "request_id": t.clock("uuid")}
                ),
            ),
            lambda: t.call("sleep", {"seconds": 30}, "Slept 30 seconds."),
        ],
    )


@loop(
    "kubectl-crash-loop",
    22,
    "CrashLoopBackOff; restarts and ages move, nothing else (an unbroken shell command)",
)
def _(t):
    n = count(3)
    rotate(
        t,
        [
            lambda: (
                k := next(n),
                t.call(
                    "bash",
                    {"command": "kubectl get pods"},
                    f"NAME READY STATUS RESTARTS AGE\nweb-1 0/1 CrashLoopBackOff {k // 4} ({k}s ago) {k}m",
                ),
            )
        ],
    )


@loop("sleep-and-view-for-ever", 22, "sleep 60 && gh run view: in_progress 80 times")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "bash",
                {"command": "sleep 60 && gh run view 77 --json status"},
                '{"status":"in_progress"}',
            )
        ],
    )


@loop("wait-only", 22, "wait, wait, wait")
def _(t):
    rotate(t, [lambda: t.call("wait", {"seconds": 30}, "Waited 30 seconds.")])


@loop("clock-only", 20, "get_current_time for ever")
def _(t):
    rotate(t, [lambda: t.call("get_current_time", {}, t.clock("iso"))])


@loop("clock-and-weather", 30, "clock and weather in turn, the weather carries its time")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("get_current_time", {}, t.clock("iso")),
            lambda: t.call(
                "get_weather",
                {"city": "Rome"},
                json.dumps({"temp": 20, "sky": "clear", "observed": t.clock("iso")}),
            ),
        ],
    )


@loop("handoff-ping-pong-no-args", 10, "two agents hand over to each other")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("transfer_to_billing", {}, "Successfully transferred to billing"),
            lambda: t.call("transfer_to_support", {}, "Successfully transferred to support"),
        ],
    )


@loop("handoff-ping-pong-new-reasons", 28, "the same with ever new reasons")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "transfer_to_billing", {"reason": t.words(5)}, "Successfully transferred to billing"
            ),
            lambda: t.call(
                "transfer_to_support", {"reason": t.words(5)}, "Successfully transferred to support"
            ),
        ],
    )


@loop("sub-agent-same-prompt-new-words", 12, "the same task, an answer in ever new words")
def _(t):
    rotate(t, [lambda: t.call("task", {"prompt": "Find the bug"}, t.lines(3))])


def _(t):
    for _ in range(60):
        t.call(
            "task",
            {"prompt": t.words(6)},
            "I cannot access the repository.\nPlease provide the files.",
        )


@loop("memory-save-again-with-id", 12, "the same fact saved, a new id each time")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "save_memory", {"text": "user likes tea"}, f"Saved memory {t.clock('uuid')}"
            )
        ],
    )


@loop("memory-save-and-growing-search", 30, "save the same fact, search: one more copy each time")
def _(t):
    mem = []

    def save():
        mem.append(f"{t.hex(8)}: user likes tea")
        t.call("save_memory", {"text": "user likes tea"}, "Memory saved.")

    rotate(t, [save, lambda: t.call("search_memory", {"q": "tea"}, "\n".join(mem[-10:]))])


@loop("ask-user-same-question-same-answer", 10, "the user says I don't know, the agent asks again")
def _(t):
    rotate(t, [lambda: t.call("ask_user", {"question": "Which region?"}, "I don't know.")])


@loop("mail-again-in-new-words", 28, "ever new reminders to the same person within one turn")
def _(t):
    rotate(
        t, [lambda: t.call("send_email", {"to": "ann@x.org", "body": t.words(8)}, "Email sent.")]
    )


@loop("robot-against-the-wall", 14, "three moves at random, each blocked")
def _(t):
    for d in ("left", "right", "forward"):
        t.call("move", {"direction": d}, f"Blocked: wall to the {d}.")
    t.first_repeat()
    while t.goes_on():
        d = t.random.choice(["left", "right", "forward"])
        t.call("move", {"direction": d}, f"Blocked: wall to the {d}.")


@loop("light-on-off", 12, "a light switched on and off")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("switch", {"light": "a", "on": True}, "on"),
            lambda: t.call("switch", {"light": "a", "on": False}, "off"),
        ],
    )


@loop("thermostat-check-for-ever", 40, "set the same target, read a value that wanders")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("set_temperature", {"target": 21}, "ok"),
            lambda: t.call("get_temperature", {}, f"{18 + t.random.random():.1f} °C"),
        ],
    )


@loop(
    "japanese-error-full-width-digits",
    14,
    "ever other edits, the line number is written in full-width digits",
)
def _(t):
    fw = str.maketrans("0123456789", "０１２３４５６７８９")
    rotate(
        t,
        [
            lambda: t.fails(
                "編集",
                {"新": t.words(3)},
                f"エラー：{str(t.random.randint(1, 999)).translate(fw)}行目に一致しません",
            )
        ],
    )


@loop("truncated-at-another-place", 22, "the same long output, cut at another place each time")
def _(t):
    x = t.lines(30)
    rotate(
        t,
        [
            lambda: (
                k := t.random.randint(300, len(x) - 50),
                t.call(
                    "bash", {"command": "cat big.log"}, x[:k] + f"\n[truncated {len(x) - k} chars]"
                ),
            )
        ],
    )


@loop("truncated-rotation", 24, "two such outputs in turn")
def _(t):
    x, y = t.lines(30), t.lines(30)

    def cut(text):
        at = t.random.randint(300, len(text) - 50)
        return text[:at] + f"\n[truncated {len(text) - at} chars]"

    rotate(
        t,
        [
            lambda: t.call("bash", {"command": "cat big.log"}, cut(x)),
            lambda: t.call("bash", {"command": "cat other.log"}, cut(y)),
        ],
    )


@loop(
    "parallel-same-two-and-a-new-grep",
    12,
    "two equal reads and one grep in new words without a new line, per batch",
)
def _(t):
    a, b = t.lines(4), t.lines(4)
    rotate(
        t,
        [
            lambda: t.batch(
                ("read_file", {"path": "a"}, a),
                ("read_file", {"path": "b"}, b),
                ("grep", {"q": t.word()}, "No matches found"),
            )
        ],
    )


@loop("parallel-errors-reworded", 12, "three rejected calls per batch in ever new words")
def _(t):
    rotate(
        t,
        [
            lambda: t.batch(
                *[
                    ("edit", {"old": t.words(2)}, "old_str not found in file", "error")
                    for _ in range(3)
                ]
            )
        ],
    )


@loop("parallel-reads-some-missing", 12, "the same three reads, answers lost now and then")
def _(t):
    xs = [t.lines(3) for _ in range(3)]
    rotate(
        t,
        [
            lambda: t.batch(
                *[
                    ("read_file", {"path": str(i)}, x if t.random.random() < 0.7 else None)
                    for i, x in enumerate(xs)
                ]
            )
        ],
    )


@loop("units-alternate", 10, "metric, imperial, metric")
def _(t):
    rotate(
        t,
        [
            lambda: t.call("get_weather", {"city": "Rome", "units": "metric"}, "20 C"),
            lambda: t.call("get_weather", {"city": "Rome", "units": "imperial"}, "68 F"),
        ],
    )


@loop("submit-refused-with-seed", 12, "submit refused, the seed of the run changes")
def _(t):
    rotate(
        t,
        [
            lambda: t.call(
                "submit",
                {},
                f"Submission rejected: tests failed (seed={t.random.randint(1, 10**6)})",
                "error",
            )
        ],
    )


@loop("submit-and-look", 20, "submit refused with a seed, the same file viewed")
def _(t):
    x = t.lines(5)
    rotate(
        t,
        [
            lambda: t.call(
                "submit",
                {},
                f"Submission rejected: tests failed (seed={t.random.randint(1, 10**6)})",
            ),
            lambda: t.call("view", {"path": "a"}, x),
        ],
    )


@loop(
    "same-read-between-new-silent-notes",
    22,
    "the same read between notes in ever new words that answer ok",
)
def _(t):
    x = t.lines(4)
    rotate(
        t,
        [
            lambda: t.call("read_file", {"path": "a"}, x),
            lambda: t.call("write_scratchpad", {"note": t.words(6)}, "ok"),
        ],
    )


@loop(
    "same-failing-test-between-comments",
    24,
    "the same test fails alike between shell comments `# ...` that do nothing",
)
def _(t):
    rotate(
        t,
        [
            lambda: t.fails("run_tests", {}, "FAILED test_a\n1 failed"),
            lambda: t.call("bash", {"command": f"# {t.words(5)}"}, ""),
        ],
    )


@loop("retry-429-for-ever-with-sleeps", 16, "429 with growing sleeps, for ever")
def _(t):
    n = count(1)
    rotate(
        t,
        [
            lambda: t.fails(
                "create_invoice",
                {"id": 7},
                f"429 Too Many Requests, retry after {t.random.randint(1, 60)}s",
            ),
            lambda: (k := next(n), t.call("sleep", {"seconds": k}, f"Slept {k}s")),
        ],
    )


@loop("token-refresh-never-helps", 14, "401, refresh, 401, refresh")
def _(t):
    rotate(
        t,
        [
            lambda: t.fails("get_account", {"id": 1}, "401 token expired"),
            lambda: t.call("refresh_token", {}, f"Token refreshed: {t.token(32)}"),
        ],
    )


@loop("token-refresh-never-helps-jwt-in-args", 24, "the new token is passed along each time")
def _(t):
    tok = {"t": "x"}

    def refresh():
        tok["t"] = t.token(32)
        t.call("refresh_token", {}, json.dumps({"token": tok["t"], "expires_in": 3600}))

    rotate(
        t,
        [lambda: t.fails("get_account", {"id": 1, "token": tok["t"]}, "401 unauthorized"), refresh],
    )


@loop(
    "devtools-snapshots-with-counted-uids",
    20,
    "chrome-devtools: take_snapshot of one page, uid=<snapshot>_<n> counts up",
)
def _(t):
    w = [t.word() for _ in range(8)]
    n = count(1)
    rotate(
        t,
        [
            lambda: (
                k := next(n),
                t.call(
                    "take_snapshot",
                    {},
                    "\n".join(f'uid={k}_{i} button "{x}"' for i, x in enumerate(w)),
                ),
            )
        ],
    )


@loop(
    "devtools-click-and-snapshot-no-effect",
    26,
    "click one button by its new uid, the same page comes back",
)
def _(t):
    w = [t.word() for _ in range(8)]
    n = count(1)
    box = {"k": 0}

    def snap():
        box["k"] = k = next(n)
        t.call("take_snapshot", {}, "\n".join(f'uid={k}_{i} button "{x}"' for i, x in enumerate(w)))

    rotate(
        t,
        [
            lambda: t.call(
                "click", {"uid": f"{box['k']}_3"}, "Successfully clicked on the element"
            ),
            snap,
        ],
    )


# --- UNCLEAR --------------------------------------------------------------------------------------

_family = "unclear"


def _(t):
    for n in range(15):
        t.call("bash", {"command": "pytest -q"}, "1 passed" if n % 2 else "1 failed")


def _(t):
    for _ in range(7):
        t.call("press_key", {"key": "ArrowDown"}, "Pressed ArrowDown")


def _(t):
    for _ in range(60):
        t.call("computer", {"action": "left_click", "coordinate": [5, 5]}, t.image())


def _(t):
    for _ in range(25):
        t.call("wait_heartbeat", {}, "alive")


def _(t):
    for n in range(20):
        t.fails("get_user", {"id": n}, "404 not found")


def _(t):
    t.batch(*[("task", {"prompt": "Solve"}, t.lines(3)) for _ in range(5)])


def _(t):
    for _ in range(25):
        t.call("bash", {"command": "python manage.py process_next"}, f"Processed {t.words(2)}")


def _(t):
    for n in range(60):
        t.call("fetch_url", {"url": "a"}, f"Title\n{1200 + n} views")
