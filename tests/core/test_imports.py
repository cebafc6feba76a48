"""Does the core stand alone, and do no two parts of the package import each other in a circle?"""

import ast
from pathlib import Path

import langchain_loopguard

PACKAGE = Path(langchain_loopguard.__file__).parent
NAME = "langchain_loopguard"
CORE = f"{NAME}.core"

ALLOWED = {"orjson", "pydantic", "xxhash"}
"""What the core may import, beside Python's own modules that do no I/O."""

FORBIDDEN = {"asyncio", "logging", "os", "pathlib", "random", "socket", "threading", "time"}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path, *, late=False):
    """The modules a file imports when it is loaded; with `late` those inside functions too."""
    pending = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


KNOWN = dict(modules())


def module_of(name):
    while name not in KNOWN:
        name = name.rpartition(".")[0]
    return name


def arrows(chosen):
    """Draw the imports between the modules that are chosen."""
    return {
        name: {
            module_of(target)
            for target in imports(KNOWN[name])
            if target.startswith(NAME) and module_of(target) in chosen
        }
        - {name}
        for name in chosen
    }


def circle(drawn):
    """Find a way from a node back to itself."""
    done, way = set(), []

    def follow(node):
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return None
        way.append(node)
        found = next(filter(None, map(follow, sorted(drawn.get(node, ())))), None)
        way.pop()
        done.add(node)
        return found

    return next(filter(None, map(follow, sorted(drawn))), None)


def is_core(name):
    return name == CORE or name.startswith(f"{CORE}.")


def test_no_arrow_leads_out_of_the_core():
    out = {
        (name, target)
        for name, path in KNOWN.items()
        if is_core(name)
        for target in imports(path, late=True)
        if target.startswith(NAME) and not is_core(module_of(target))
    }
    assert not out


def test_the_core_imports_nothing_that_does_something():
    tops = {
        target.partition(".")[0]
        for name, path in KNOWN.items()
        if is_core(name)
        for target in imports(path, late=True)
    }
    assert not tops & FORBIDDEN
    foreign = {top for top in tops if top.startswith("lang")} - {NAME}
    assert not foreign
    assert tops >= ALLOWED


def test_no_modules_of_the_core_import_each_other_in_a_circle():
    assert circle(arrows({name for name in KNOWN if is_core(name)})) is None


def test_no_parts_of_the_package_import_each_other_in_a_circle():
    def part(name):
        return ".".join(name.split(".")[:2])

    drawn = {}
    for name, targets in arrows(set(KNOWN) - {NAME}).items():
        drawn.setdefault(part(name), set()).update(map(part, targets))
    assert circle({name: targets - {name} for name, targets in drawn.items()}) is None


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
