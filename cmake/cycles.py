#!/usr/bin/env python3
"""Finds cycles between the folders and between the units of the library, the benchmarks and the program.

    python3 cmake/cycles.py [SYMBOLS]

A unit is a header with the sources that implement it: the source of the same name, and sources without a header of
their own that define functions which it declares (of several such headers in their folder, most of them). It depends
on the units that its files include and, where SYMBOLS (what cmake/alone.py writes) is given, on those whose symbols its
sources use. A folder depends on what its own files depend on; folders inside of it are folders of their own.

Of the floors of the house (FLOORS) a lower one includes nothing of a higher one.

Prints every group of units, and of folders, that depend on one another in a circle, with the edges that close it, and
exits 1 if there is one. Of an edge it names the include or the symbol that makes it.
"""

import collections
import os
import re
import subprocess
import sys

ROOTS = ("engine", "ops", "eager", "lm", "training", "benches", "cli")
# Floors, the lowest first: a file includes nothing of a floor above its own. The longest prefix counts.
FLOORS = (("engine", "ops"), ("lm",), ("lm/serve", "eager", "training"), ("benches",), ("cli",))
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# A definition begins at the start of a line; the name before its parameters is the last one, without its class.
DEFINITION = re.compile(r"^[A-Za-z_](?:[^\n;={}()]*[\s:&*])?(\w+)\(", re.MULTILINE)
CALLABLE = re.compile(r"\b(\w+)\(")


def tracked_files():
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "--", *ROOTS],
        check=True, capture_output=True, text=True).stdout.split()
    return sorted(f for f in set(listed) if f.endswith((".h", ".cpp")) and os.path.exists(f))


def read(file):
    with open(file, encoding="utf-8") as text:
        return text.read()


def includes_of(files):
    known = set(files)
    return {file: [name for name in INCLUDE.findall(read(file)) if name in known] for file in files}


def units_of(files, includes):
    """The unit of each file: the path of its header or source, without the suffix."""
    known = set(files)
    unit = {}
    for file in files:
        stem = file.rsplit(".", 1)[0]
        unit[file] = stem
        if file.endswith(".cpp") and stem + ".h" not in known:
            defined = set(DEFINITION.findall(read(file)))
            if "main" in defined:  # a program is nobody's implementation
                continue
            declared = {h: len(defined.intersection(CALLABLE.findall(read(h)))) for h in includes[file]
                        if h.endswith(".h") and os.path.dirname(h) == os.path.dirname(file)}
            most = max(declared, key=declared.get, default=None)
            if most and declared[most]:
                unit[file] = most.rsplit(".", 1)[0]
    return unit


def floor_of(file):
    found = max(((len(folder), floor) for floor, folders in enumerate(FLOORS) for folder in folders
                 if file.startswith(folder + "/")))
    return found[1]


def climbs(includes):
    """Prints the includes that lead to a higher floor; how many there are."""
    found = [(a, b) for a in sorted(includes) for b in includes[a] if floor_of(b) > floor_of(a)]
    for a, b in found:
        print(f'{a} includes "{b}", which lies above it')
    return len(found)


def symbol_edges(files, symbols):
    """Pairs of sources, the first of which uses a symbol that the second defines, with that symbol."""
    defined = {}
    used = {}
    for source in files:
        path = os.path.join(symbols, source)
        if source.endswith(".cpp") and os.path.exists(path):
            used[source] = []
            for line in read(path).splitlines():
                kind, name = line.split(" ", 1)
                if kind == "U":
                    used[source].append(name)
                elif kind == "D":  # not what is inline or a template: many objects define that
                    defined[name] = source
    for source, names in used.items():
        for name in names:
            if name in defined and defined[name] != source:
                yield source, defined[name], name


def strongly_connected(graph):
    """Tarjan's algorithm, without recursion. Only groups of more than one."""
    index, low, on_stack, stack, groups = {}, {}, set(), [], []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(sorted(graph[successor]))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == node:
                            break
                    if len(group) > 1:
                        groups.append(sorted(group))
    return groups


def report(kind, edges):
    graph = collections.defaultdict(set)
    for a, b in edges:
        graph[a].add(b)
        graph[b]  # an entry even for what depends on nothing
    groups = strongly_connected(graph)
    for group in groups:
        print(f"cycle of {len(group)} {kind}: {' '.join(group)}")
        inside = set(group)
        for (a, b), reasons in sorted(edges.items()):
            if a in inside and b in inside:
                print(f"    {a} -> {b}: {reasons[0]}" + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""))
    return len(groups)


def demangled(edges):
    names = sorted({n for _, _, n in edges})
    try:
        shown = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
        return dict(zip(names, shown.splitlines()))
    except (OSError, subprocess.CalledProcessError):
        return {n: n for n in names}


def main():
    files = tracked_files()
    includes = includes_of(files)
    unit = units_of(files, includes)
    reasons = [(a, b, f'{a} includes "{b}"') for a in files for b in includes[a]]
    linked = 0
    if len(sys.argv) > 1:
        links = list(symbol_edges(set(files), sys.argv[1]))
        names = demangled(links)
        linked = len({a for a, _, _ in links})
        reasons += [(a, b, f"{a} uses {names[s]} of {b}") for a, b, s in links]
        if not linked:
            sys.exit(f"cycles: no symbols of the library under {sys.argv[1]}: python3 cmake/alone.py writes them")
    units = collections.defaultdict(list)
    folders = collections.defaultdict(list)
    for a, b, why in reasons:
        if unit[a] != unit[b]:
            units[unit[a], unit[b]].append(why)
        if os.path.dirname(a) != os.path.dirname(b):
            folders[os.path.dirname(a), os.path.dirname(b)].append(why)
    found = report("folders", folders) + report("units", units) + climbs(includes)
    how = f"includes and the symbols of {linked} sources" if linked else "includes"
    print(f"cycles: {found} among {len(set(unit.values()))} units in {len({os.path.dirname(f) for f in files})} folders"
          f" (by {how})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
