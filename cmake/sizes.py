#!/usr/bin/env python3
"""Finds crowds: folders of more than 30 files of their own, and sources of more than 450 lines.

    python3 cmake/sizes.py

Prints each and exits 1 if there is one. Tables are no exception: they can be divided as well.
"""

import collections
import os
import subprocess
import sys

MOST_FILES = 30
MOST_LINES = 450


def main():
    files = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split()
    files = sorted(f for f in set(files) if os.path.exists(f))
    faults = []
    for folder, count in collections.Counter(os.path.dirname(f) for f in files).items():
        if count > MOST_FILES:
            faults.append(f"{folder or '.'}: {count} files, at most {MOST_FILES}")
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
