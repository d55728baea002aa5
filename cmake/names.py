#!/usr/bin/env python3
"""Finds types that are defined twice under one name: python3 cmake/names.py

Two definitions of one qualified name in a program break C++'s one-definition rule. No compiler sees it, and the linker
keeps one of the templates that both are put into: vectors of the one are then moved as if they held the other. Types in
unnamed namespaces have no such name. Namespaces and types are read at the start of lines, where clang-format puts them.
"""

import collections
import pathlib
import re
import sys

FOLDERS = ("engine", "ops", "eager", "lm", "training", "cli", "benches")
NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?(?:\[\[\w+\]\] )?\{(?!.*\})")
CLOSED = re.compile(r"^\}  // namespace ?([\w:]*)")
TYPE = re.compile(r"^(?:struct|class|union|enum class|enum) (?:alignas\([^)]*\) )?([\w:]+)[^;]*$")


def types_of(path):
    """The qualified names of the types that the file defines, without those in unnamed namespaces."""
    spaces = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if opened := NAMESPACE.match(line):
            spaces.append(opened[1])
        elif CLOSED.match(line):
            if spaces:
                spaces.pop()
        elif (defined := TYPE.match(line)) and "" not in spaces:
            yield "::".join(spaces + [defined[1]]), number


def main():
    places = collections.defaultdict(set)
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                for name, number in types_of(path):
                    places[name].add(f"{path}:{number}")
    twice = {name: found for name, found in places.items() if len(found) > 1}
    for name, found in sorted(twice.items()):
        print(f"{name} is defined in {' and '.join(sorted(found))}")
    print(f"names: {len(places)} types, {len(twice)} defined twice")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
