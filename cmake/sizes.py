#!/usr/bin/env python3
"""Finds crowds: folders of too many units, and sources of more than 450 lines.

    python3 cmake/sizes.py

A unit is what has one name: a header with its source, or another file. Prints each crowd and exits 1 if there is one.
Tables are no exception: they can be divided as well.
"""

import collections
import os
import subprocess
import sys

# A reader sees a folder of code at a glance; tests, golden data, examples and documents are looked up by name.
MOST_UNITS = 24
MOST_BY_NAME = 30
BY_NAME = ("tests", "docs", "examples")
MOST_LINES = 450


def main():
    files = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split()
    files = sorted(f for f in set(files) if os.path.exists(f))
    units = collections.defaultdict(set)
    for file in files:
        units[os.path.dirname(file)].add(os.path.basename(file).rsplit(".", 1)[0])
    faults = []
    for folder, names in units.items():
        most = MOST_BY_NAME if folder.split(os.sep)[0] in BY_NAME else MOST_UNITS
        if len(names) > most:
            faults.append(f"{folder or '.'}: {len(names)} units, at most {most}")
    for file in files:
        if file.endswith((".cpp", ".h")):
            with open(file, encoding="utf-8") as text:
                lines = sum(1 for _ in text)
            if lines > MOST_LINES:
                faults.append(f"{file}: {lines} lines, at most {MOST_LINES}")
    print("\n".join(faults) if faults else f"sizes: {len(files)} files, none in a crowd, none too long")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
