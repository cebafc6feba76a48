"""How is the fuzzer run? `python -m tests.fuzz.run --inputs 10000000`

Each target runs in a process of its own, guided by coverage where atheris is installed and by
seeded chance otherwise. Prints a table and ends with 1 when an input was a fault; the input is
kept in a file, which `--again FILE --target T` runs again.
"""

import argparse
import logging
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST = 384
"""Bytes of an input: enough for a handful of messages."""

SHORT, LONG = 40, 0.2
"""By chance most inputs are short, and only so many of them are long."""


def main():
    options = _options()
    if options.alone or options.again:
        logging.getLogger("langchain_loopguard").setLevel(logging.CRITICAL)
        _guided(options) if options.guided and not options.again else _by_chance(options)
        return
    from tests.fuzz.targets import TARGETS

    names = options.target or list(TARGETS)
    whole = sum(TARGETS[name][1] for name in names)
    if not options.guided:
        print("by chance alone; for guidance by coverage: pip install --group fuzz")  # noqa: T201
    print(f"{'target':<12} {'inputs':>10} {'seconds':>8}  faults", flush=True)  # noqa: T201
    total = faults = 0
    for name in names:
        started = time.monotonic()
        done, fault = _apart(name, options.inputs * TARGETS[name][1] // whole, options)
        total, faults = total + done, faults + bool(fault)
        spent = time.monotonic() - started
        print(f"{name:<12} {done:>10,} {spent:>8.0f}  {fault or 0}", flush=True)  # noqa: T201
    print(f"{'all':<12} {total:>10,} {'':>8}  {faults}")  # noqa: T201
    sys.exit(1 if faults else 0)


def _options():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, over all targets")
    parser.add_argument("--target", action="append", help="only this target; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--by-chance", action="store_true", help="without atheris")
    parser.add_argument("--again", type=Path, help="run one kept input")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import atheris  # noqa: F401
    except ImportError:
        options.by_chance = True
    options.guided = not options.by_chance
    return options


def _apart(name, inputs, options):
    """Run one target in a process of its own; gives the inputs done and what went wrong."""
    command = [
        sys.executable, "-m", "tests.fuzz.run", "--alone", "--target", name,
        "--inputs", str(inputs), "--seed", str(options.seed), "--keep", str(options.keep),
        *(["--by-chance"] if options.by_chance else []),
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"(?:Done |stat::number_of_executed_units: )(\d+)", ended.stderr)
    done = int(found[-1]) if found else 0
    if ended.returncode == 0 and found:
        return done, ""
    file = options.keep / f"{name}.txt"
    file.write_text(ended.stdout + ended.stderr)
    return done, f"see {file}"


def _guided(options):
    import atheris

    with atheris.instrument_imports(include=["langchain_loopguard"]):
        from tests.fuzz.targets import TARGETS
    name = options.target[0]
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(some(options.seed, 200)):
            Path(folder, str(number)).write_bytes(data)
        arguments = [
            sys.argv[0], f"-runs={options.inputs}", f"-seed={options.seed}",
            f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=4096", "-len_control=0",
            "-print_final_stats=1", f"-artifact_prefix={options.keep}/{name}-", folder,
        ]  # fmt: skip
        atheris.Setup(arguments, TARGETS[name][0])
        atheris.Fuzz()


def _by_chance(options):
    from tests.fuzz.targets import TARGETS

    name, done = options.target[0], 0
    again = options.again and [options.again.read_bytes()]
    for data in again or some(options.seed, options.inputs):
        try:
            TARGETS[name][0](data)
        except BaseException:
            file = options.keep / f"{name}-fault"
            file.write_bytes(data)
            print(f"Done {done}; kept in {file}", file=sys.stderr)  # noqa: T201
            raise
        done += 1
    print(f"Done {done} runs", file=sys.stderr)  # noqa: T201


def some(seed, count):
    """Make inputs by seeded chance."""
    made = random.Random(seed)
    for _ in range(count):
        # Most faults need few bytes, and short inputs are the quick ones.
        longest = LONGEST if made.random() < LONG else SHORT
        yield made.randbytes(made.randrange(1, longest))


if __name__ == "__main__":
    main()
