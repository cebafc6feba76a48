"""`python -m tests.evaluation`: every set for the default, each part switched off, each preset.

Prints the tables; `--json FILE` writes all figures and every effect, `--write-docs` puts the
tables into `core/README.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.evaluation import cost, tables
from tests.evaluation.run import measure


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n\n")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument(
        "--write-docs", action="store_true", help="rewrite the tables in core/README.md"
    )
    parser.add_argument("--workers", type=int, help="processes; as many as processors by default")
    given = parser.parse_args()
    measured = {"times": [goal._asdict() for goal in cost.times()]}
    measured |= measure(workers=given.workers)
    _say(tables.goals_table([*measured["goals"], *measured["times"]]))
    _say("loops / benign asked / good solved asked / solved warned; elsewhere right verdicts")
    _say(tables.scores_table(measured["scores"], "off: "))
    _say(tables.parts_table(measured["mechanisms"]))
    _say(tables.scores_table(measured["scores"], "number: "))
    _say(tables.scores_table(measured["scores"], "preset: "))
    if given.json:
        text = json.dumps(measured, indent=1, ensure_ascii=False)
        given.json.write_text(text + "\n", encoding="utf-8")
    if given.write_docs:
        text = tables.README.read_text(encoding="utf-8")
        new = tables.with_blocks(text, tables.blocks(measured))
        tables.README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
