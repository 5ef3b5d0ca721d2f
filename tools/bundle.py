"""The explorers in one script that browsers also load from a file: modules they load over http alone.

The modules stay the one source. Each becomes a function of the script, in the order in which they need each other, and
the data they would fetch is part of it. Only the forms of import and export that the modules use are known; any other
is an error.
"""

import json
import posixpath
import re

IMPORT = re.compile(r'^import\s+([^"]+?)\s+from\s+"([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function\*?) ([\w$]+))", re.MULTILINE)
DEFAULT = re.compile(r"^export default ", re.MULTILINE)
UNKNOWN = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def binding(what, source):
    """The names that an import brings, as a constant of a function."""
    if what.startswith("{"):
        names = re.sub(r"([\w$]+) as ", r"\1: ", what)
        return f"const {names} = {source};"
    if what.startswith("* as "):
        return f"const {what.removeprefix('* as ')} = {source};"
    return f"const {{ default: {what} }} = {source};"


def as_function(name, text):
    """A module as a function that returns what it exports; and the modules it imports."""
    needs = []

    def replace(match):
        needs.append(posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2])))
        return binding(match[1], f"modules[{json.dumps(needs[-1])}]")

    exported = EXPORT.findall(text)
    text = EXPORT.sub("", IMPORT.sub(replace, text))
    text, defaults = DEFAULT.subn("const theDefault = ", text)
    if found := UNKNOWN.search(text):
        raise ValueError(f"{name}: tools/bundle.py does not know this form: {found[0]}")
    exported += ["default: theDefault"] * defaults
    text = text.replace("import.meta.url", "address")
    return f"modules[{json.dumps(name)}] = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();\n", needs


def bundle(folder, entry="index.js"):
    """One script of a module and of all that it imports, with the data of ``folder``/data as ``rbalExplorerData``."""
    done, under_way = {}, []

    def visit(name):
        if name in done:
            return
        if name in under_way:
            raise ValueError(f"modules import each other: {' > '.join([*under_way, name])}")
        under_way.append(name)
        text, needs = as_function(name, (folder / name).read_text(encoding="utf-8"))
        for need in needs:
            visit(need)
        under_way.pop()
        done[name] = text

    visit(entry)
    data = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "data").glob("*.json"))
    }
    return (
        '"use strict";\n(() => {\nconst address = document.currentScript.src;\nconst modules = {};\n'
        f"globalThis.rbalExplorerData = {json.dumps(data)};\n{''.join(done.values())}}})();\n"
    )
