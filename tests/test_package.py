"""What does importing the package do, and what does it leave alone?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import langchain_loopguard

ADAPTERS = [
    "LoopGuardCallbackHandler",
    "LoopGuardMiddleware",
    "LoopGuardNode",
    "LoopGuardState",
    "add_loop_guard",
    "guard_subagents",
]


def run_python(code: str) -> str:
    """Run `code` in a new interpreter, since this one has imported everything already."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def modules_after(code: str) -> set[str]:
    return set(
        json.loads(run_python(f"import json, sys\n{code}\nprint(json.dumps([*sys.modules]))"))
    )


@pytest.mark.parametrize("host", ["langgraph", "langchain", "langchain_classic", "typer", "rich"])
def test_importing_the_package_does_not_import(host: str) -> None:
    assert host not in modules_after("import langchain_loopguard")


def test_importing_the_package_loads_no_adapter() -> None:
    loaded = modules_after("import langchain_loopguard")
    assert not loaded & {f"langchain_loopguard.{name}" for name in ("callbacks", "node", "cli")}


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


@pytest.mark.parametrize("name", langchain_loopguard.__all__)
def test_every_listed_name_exists(name: str) -> None:
    assert getattr(langchain_loopguard, name) is not None


def test_the_listed_names_are_sorted_and_unique() -> None:
    assert list(langchain_loopguard.__all__) == sorted(set(langchain_loopguard.__all__))


def test_dir_shows_the_adapters_before_they_are_loaded() -> None:
    shown = run_python("import langchain_loopguard as p; print(*dir(p))").split()
    assert set(ADAPTERS) <= set(shown)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LoopGard'"):
        _ = langchain_loopguard.LoopGard  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["LoopGuardNode", "LoopGuardState", "add_loop_guard"])
def test_without_langgraph_the_error_names_the_extra(name: str) -> None:
    code = (
        "import sys\n"
        "sys.modules['langgraph'] = None\n"
        "import langchain_loopguard\n"
        f"try: langchain_loopguard.{name}\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install 'langchain-loopguard[langgraph]'" in run_python(code)


@pytest.mark.parametrize("name", ["LoopGuardMiddleware", "guard_subagents"])
@pytest.mark.parametrize("host", ["langchain", "langgraph"])
def test_without_langchain_the_error_names_the_extra(name: str, host: str) -> None:
    code = (
        "import sys\n"
        f"sys.modules['{host}'] = None\n"
        "import langchain_loopguard\n"
        f"try: langchain_loopguard.{name}\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install 'langchain-loopguard[langchain]'" in run_python(code)


def test_without_langgraph_the_callback_handler_still_loads() -> None:
    code = (
        "import sys\n"
        "sys.modules['langgraph'] = None\n"
        "from langchain_loopguard import LoopGuardCallbackHandler\n"
        "print(LoopGuardCallbackHandler.__name__)"
    )
    assert run_python(code).strip() == "LoopGuardCallbackHandler"


def test_a_missing_module_of_our_own_is_not_blamed_on_an_extra() -> None:
    code = (
        "import sys\n"
        "import langchain_loopguard\n"
        "sys.modules['langchain_loopguard.node'] = None\n"
        "try: langchain_loopguard.LoopGuardNode\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install" not in run_python(code)
