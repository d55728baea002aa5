#!/usr/bin/env python3
"""Finds comments of headers that have no verb to begin with: python3 cmake/comments.py [FOLDER...]

A comment in a header is a sentence with a subject and a verb. One that opens with a word of OPENERS ("What ...", "Of ...",
"The same ...") is most often neither: it repeats the sentence before it, or leaves the reader to find its subject. Begin
with the verb ("Returns", "Holds", "Throws") or with the subject. A sentence such as "For each row, finds ..." is
better turned round. Comments behind code on its line are not looked at.

Words that have another one in the table of CONTRIBUTING.md, and no other sense (WORDS), are found in the comments of all
sources and in documents.

Prints each and exits 1 if there is one.
"""

import pathlib
import re
import sys

FOLDERS = ("engine", "ops", "eager", "lm", "training", "cli", "benches")
OPENERS = ("What", "Of", "The same", "How", "Where", "For", "As", "Those", "Such", "Likewise", "Ditto")
SOURCES = (*FOLDERS, "shaders", "tests", "examples")
DOCUMENTS = ("README.md", "MIGRATION.md", "docs")
WORDS = {r"anew": "again", r"reckon(?:s|ed|ing)?": "estimate", r"poses? as": "act as"}
COMMENT = re.compile(r"^\s*//[/!]? ?(.*)$")
OPENS = re.compile(rf"^(?:{'|'.join(OPENERS)})\b")


def openings(path):
    """The first lines of the file's comments, with their numbers."""
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = COMMENT.match(line)
        if found and not COMMENT.match(before):
            yield number, found[1]
        before = line


def words(path):
    """Words of the file's comments, or of all of a document, that have another one."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line if path.suffix == ".md" else line.partition("//")[2]
        for word, better in WORDS.items():
            if re.search(rf"\b{word}\b", text, re.IGNORECASE):
                yield f"{path}:{number}: write '{better}': {text.strip()}"


def main():
    total, faults = 0, []
    for root in SOURCES + DOCUMENTS:
        root = pathlib.Path(root)
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.suffix in (".h", ".cpp", ".glsl", ".comp", ".md"):
                faults += words(path)
    other_words = len(faults)
    for folder in sys.argv[1:] or FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*.h")):
            for number, text in openings(path):
                total += 1
                if OPENS.match(text):
                    faults.append(f"{path}:{number}: {text}")
    print("\n".join(faults + [f"comments: {total} in headers, {len(faults) - other_words} open with a word that is no "
                              f"verb; {other_words} words that have another one"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
