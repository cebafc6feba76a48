"""What importing the package does and leaves alone, and which part may import which."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import langchain_loopguard

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "langchain_loopguard"

LAZY = {
    "LoopGuardCallbackHandler": None,
    "InvalidResumeError": None,
    "LoopGuardMiddleware": "langchain",
    "guard_subagents": "langchain",
    "LoopGuardNode": "langgraph",
    "LoopGuardState": "langgraph",
    "add_loop_guard": "langgraph",
}
"""Name that loads when it is first used -> the extra that it needs."""


def run_python(code: str) -> str:
    """Run `code` in a new interpreter, since this one has imported everything already."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


@functools.cache
def modules_after(code: str) -> set[str]:
    return set(
        json.loads(run_python(f"import json, sys\n{code}\nprint(json.dumps([*sys.modules]))"))
    )


# --- Importing --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["langgraph", "langchain", "langchain_classic", "typer", "rich"])
def test_importing_the_package_does_not_import(host: str) -> None:
    assert host not in modules_after("import langchain_loopguard")


def test_importing_the_package_loads_no_adapter() -> None:
    loaded = modules_after("import langchain_loopguard")
    assert not loaded & {f"langchain_loopguard.{name}" for name in ("adapters", "langchain", "cli")}


def test_the_seeds_hash_is_loaded_where_the_seed_is_used() -> None:
    code = "from langchain_loopguard import LoopGuardPolicy; LoopGuardPolicy()"
    assert "fnv_c" not in modules_after(code)
    assert "fnv_c" in modules_after("from langchain_loopguard import LoopDetector")


def test_the_core_imports_nothing_of_the_host() -> None:
    code = (
        "import importlib, pkgutil, sys\n"
        "import langchain_loopguard\n"
        "path = langchain_loopguard.__path__[0] + '/core'\n"
        "names = [m.name for m in pkgutil.walk_packages([path], 'langchain_loopguard.core.')]\n"
        "for name in names: importlib.import_module(name)"
    )
    hosts = {name for name in modules_after(code) if name.partition(".")[0].startswith("lang")}
    assert {name for name in hosts if not name.startswith("langchain_loopguard")} == set()


def test_the_listed_names_are_sorted_and_unique() -> None:
    assert list(langchain_loopguard.__all__) == sorted(set(langchain_loopguard.__all__))


@pytest.mark.parametrize("name", langchain_loopguard.__all__)
def test_every_listed_name_exists(name: str) -> None:
    assert getattr(langchain_loopguard, name) is not None


@pytest.mark.parametrize("module", ["callbacks", "middleware", "node"])
def test_a_module_of_the_first_layout_is_still_there(module: str) -> None:
    found = importlib.import_module(f"langchain_loopguard.{module}")
    assert set(found.__all__) & set(LAZY)


def test_the_version_is_the_one_that_is_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert langchain_loopguard.__version__ == project["version"]


def test_dir_shows_the_adapters_before_they_are_loaded() -> None:
    shown = run_python("import langchain_loopguard as p; print(*dir(p))").split()
    assert set(LAZY) <= set(shown)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LoopGard'"):
        _ = langchain_loopguard.LoopGard  # type: ignore[attr-defined]


# --- Without the hosts ------------------------------------------------------------------------


@functools.cache
def messages_without(missing: str, names: tuple[str, ...] = tuple(LAZY)) -> dict[str, str]:
    """What each lazy name says of itself, or the error, where a module can't be imported."""
    code = (
        "import json, sys\n"
        f"sys.modules['{missing}'] = None\n"
        "import langchain_loopguard\n"
        "def said(name):\n"
        "    try: return getattr(langchain_loopguard, name).__name__\n"
        "    except ImportError as error: return str(error)\n"
        f"print(json.dumps({{name: said(name) for name in {names}}}))"
    )
    return json.loads(run_python(code))


@pytest.mark.parametrize(("name", "extra"), [item for item in LAZY.items() if item[1]])
def test_without_langgraph_the_error_names_the_extra(name: str, extra: str) -> None:
    message = messages_without("langgraph")[name]
    assert f"pip install 'langchain-loopguard[{extra}]'" in message


@pytest.mark.parametrize("name", [name for name, extra in LAZY.items() if extra == "langchain"])
def test_without_langchain_the_error_names_the_extra(name: str) -> None:
    assert "pip install 'langchain-loopguard[langchain]'" in messages_without("langchain")[name]


@pytest.mark.parametrize("name", [name for name, extra in LAZY.items() if extra is None])
def test_without_langgraph_the_rest_still_loads(name: str) -> None:
    assert messages_without("langgraph")[name] == name


def test_a_missing_module_of_our_own_is_not_blamed_on_an_extra() -> None:
    missing = "langchain_loopguard.adapters.node"
    assert "pip install" not in messages_without(missing, ("LoopGuardNode",))["LoopGuardNode"]


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        pytest.param("scipy", "calibrate -", "calibrate", id="calibrate"),
    ],
)
def test_without_an_extra_the_command_names_it(missing: str, command: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv[1:] = {command.split()!r}\n"
        "from langchain_loopguard.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, input=""
    )
    assert f"langchain-loopguard[{extra}]" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# --- Layout -----------------------------------------------------------------------------------

LAYERS = (
    ("core",),
    ("seed",),
    ("presets",),
    ("policy",),
    ("__init__",),
    ("langchain",),
    ("adapters",),
    ("callbacks", "middleware", "node", "subagents"),
    ("demo",),
    ("replay",),
    ("cli",),
    ("__main__",),
)
"""A part imports what stands above it and itself, nothing below and no neighbour."""

PARTS = [part for layer in LAYERS for part in layer]


def imports_of(path: Path) -> set[str]:
    """The modules of this package that a file imports at run time, functions included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] == PACKAGE.name} & MODULES.keys()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def part_of(module: str) -> str:
    return [*module.split("."), "__init__"][1]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_no_part_below_it(part: str) -> None:
    above = set()
    for layer in LAYERS:
        if part in layer:
            break
        above |= set(layer)
    imported = {
        (module, name)
        for module, path in MODULES.items()
        if part_of(module) == part
        for name in imports_of(path)
    }
    assert {pair for pair in imported if part_of(pair[1]) not in {part, *above}} == set()


def test_no_module_imports_itself_in_a_circle() -> None:
    # A package's `__init__` is the shop window of its own modules, and no way between two of them.
    graph = {
        module: {
            name
            for name in imports_of(path)
            if name != module and MODULES[name].name != "__init__.py"
        }
        for module, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_package_holds_the_parts_and_nothing_else() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__pycache__"} == set(PARTS)


def test_the_top_level_holds_only_what_belongs_there() -> None:
    done = subprocess.run(
        ["git", "ls-files"],  # noqa: S607 - whatever git there is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {line.partition("/")[0] for line in done.stdout.splitlines()}
    if done.returncode:  # A copy without its history.
        found = {path.name for path in ROOT.iterdir()} - {"build", "dist"}
    allowed = {
        "LICENSE",
        "README.md",
        "langchain_loopguard",
        "notebooks",
        "pyproject.toml",
        "tests",
    }
    assert {name for name in found if not name.startswith(".")} <= allowed
