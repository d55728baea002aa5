#!/usr/bin/env python3
"""Prints the picture of the rooms from the tree: python3 cmake/rooms.py [--check]

A room is a folder of engine/ or lm/, or a folder at the top. What it holds is said by the table in
docs/internals/architecture.md, what is inside of it by its folders, its floor by cmake/cycles.py, and what it stands on by
the includes of its files (of rooms on its own floor, without those that others of them stand on).

Writes docs/images/architecture.svg. With --check it writes nothing, and exits 1 if the picture is not the one that the
tree gives, or if a room has no row in the table or a row no room.
"""

import collections
import os
import re
import subprocess
import sys
import xml.sax.saxutils

sys.dont_write_bytecode = True
import cycles  # noqa: E402, beside this file

PAGE = "docs/internals/architecture.md"
PICTURE = "docs/images/architecture.svg"
HOUSES = ("engine", "lm")  # their folders are rooms
# A floor's name and colour, the highest first; the last is beside the house.
FLOORS = (("the program", "#fdf1cf"), ("benchmarks", "#f4f4f4"), ("training, serving, eager", "#fbe3da"),
          ("language models", "#e2f0df"), ("engine and operations", "#dde9f7"), ("beside it", "#f4f4f4"))
WIDTH, MARGIN, GAP, COLUMNS = 1320, 24, 14, 5
TITLE, TEXT, SMALL = 15, 12.5, 11.5  # sizes of letters
ROW = re.compile(r"^\| `([\w/]+)/` \| ([^|]*) \|", re.MULTILINE)


def rooms_of_tree():
    """Rooms, each with the folders inside of it."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    rooms = collections.defaultdict(set)
    for file in filter(os.path.isfile, listed):
        folders = file.split("/")[:-1]
        if not folders or folders[0].startswith(".") or folders[0] == "docs":
            continue
        own = 2 if folders[0] in HOUSES else 1
        if len(folders) >= own:
            rooms["/".join(folders[:own])].update(folders[own:own + 1])
    return {room: sorted(inside) for room, inside in rooms.items()}


def room_of(file):
    parts = file.split("/")
    if parts[0] in HOUSES:
        return "/".join(parts[:2]) if len(parts) > 2 else None  # an umbrella header is in no room
    return parts[0]


def floor_of(room):
    """Its place in FLOORS."""
    if room == "shaders":
        room = "engine/device"
    if room.split("/")[0] not in cycles.ROOTS:
        return len(FLOORS) - 1
    return len(cycles.FLOORS) - 1 - cycles.floor_of(room + "/")


def edges_of_tree():
    """The rooms that a room's files include."""
    files = cycles.tracked_files()
    edges = collections.defaultdict(set)
    for file, included in cycles.includes_of(files).items():
        for other in included:
            a, b = room_of(file), room_of(other)
            if a and b and a != b:
                edges[a].add(b)
    return edges


def reachable(edges, start):
    seen, left = set(), [start]
    while left:
        for room in edges[left.pop()]:
            if room not in seen:
                seen.add(room)
                left.append(room)
    return seen


def stands_on(edges, room, floor):
    """The rooms of its floor that it includes, without those that another of them already reaches."""
    near = {r for r in edges[room] if r in floor}
    return [r for r in sorted(near)
            if not any(r in reachable(edges, o) and o not in reachable(edges, r) for o in near if o != r)]


def height_in_floor(edges, room, floor):
    """How many rooms of its floor are under it: rooms that know more stand higher."""
    return len(reachable(edges, room) & floor)


def wrapped(text, size, width):
    most = int(width / (size * 0.55))
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > most:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return lines + [line] if line else lines


class Picture:
    def __init__(self):
        self.parts, self.y = [], MARGIN

    def text(self, x, y, line, size, colour="#222", more=""):
        line = xml.sax.saxutils.escape(line)
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{more}>{line}</text>')

    def box(self, x, y, width, height, fill, stroke, radius=8):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{fill}"'
                          f' stroke="{stroke}"/>')

    def room(self, x, y, width, height, lines):
        self.box(x, y, width, height, "#ffffff", "#6b7280", 6)
        y += 8
        for line, size, colour, more in lines:
            y += size + 5
            self.text(x + 12, y, line, size, colour, more)
            y += 3 if size == TITLE else 0

    def floor(self, name, colour, rooms):
        """Rows of boxes on a band. `rooms`: a list of lists of lines."""
        columns = min(COLUMNS, len(rooms))
        inner = WIDTH - 2 * MARGIN - 2 * GAP
        width = (inner - (columns - 1) * GAP) / columns
        rows = [rooms[i:i + columns] for i in range(0, len(rooms), columns)]
        made = [[lines(width - 24) for lines in row] for row in rows]
        heights = [max(sum(line[1] + 5 for line in lines) for lines in row) + 24 for row in made]
        self.box(MARGIN, self.y, WIDTH - 2 * MARGIN, 34 + sum(heights) + GAP * len(rows), colour, "#9ca3af")
        self.text(MARGIN + GAP, self.y + 23, name, 13.5, "#374151", ' font-style="italic"')
        self.y += 34
        for row, height in zip(made, heights):
            for column, lines in enumerate(row):
                self.room(MARGIN + GAP + column * (width + GAP), self.y, width, height, lines)
            self.y += height + GAP
        self.y += 18

    def svg(self):
        height = self.y - 18 + MARGIN
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
                f'font-family="DejaVu Sans, Verdana, Arial, sans-serif">\n'
                f'<rect width="{WIDTH}" height="{height:g}" rx="10" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def lines_of(room, holds, inside, under):
    def lines(width):
        found = [(room + "/", TITLE, "#111827", ' font-weight="bold"')]
        found += [(line, TEXT, "#222", "") for line in wrapped(holds, TEXT, width)]
        found += [(line, SMALL, "#1d4ed8", ' font-family="DejaVu Sans Mono, monospace"')
                  for line in wrapped("  ".join(inside), SMALL * 1.09, width)]
        if under:
            names = ", ".join(r.split("/")[-1] for r in under)
            found += [(line, SMALL, "#6b7280", "") for line in wrapped(f"stands on {names}", SMALL, width)]
        return found
    return lines


def picture(rooms, said, edges):
    drawn = Picture()
    for number, (name, colour) in enumerate(FLOORS):
        floor = {room for room in rooms if floor_of(room) == number}
        order = sorted(floor, key=lambda r: (-height_in_floor(edges, r, floor), r))
        drawn.floor(name, colour, [lines_of(room, said[room], rooms[room], stands_on(edges, room, floor))
                                   for room in order])
    return drawn.svg()


def main():
    with open(PAGE, encoding="utf-8") as page:
        said = {room: holds.replace("`", "") for room, holds in ROW.findall(page.read())}
    rooms = rooms_of_tree()
    said = {room: holds for room, holds in said.items()
            if room in rooms or room.split("/")[0] in HOUSES or "/" not in room}
    faults = [f"{PAGE}: no row for the room {room}/" for room in sorted(rooms.keys() - said.keys())]
    faults += [f"{PAGE}: a row for {room}/, which is no room" for room in sorted(said.keys() - rooms.keys())]
    if not faults:
        svg = picture(rooms, said, edges_of_tree())
        if "--check" not in sys.argv:
            with open(PICTURE, "w", encoding="utf-8") as file:
                file.write(svg)
        elif not os.path.exists(PICTURE) or cycles.read(PICTURE) != svg:
            faults.append(f"{PICTURE} is not the picture of this tree: python3 cmake/rooms.py")
    print("\n".join(faults) if faults else f"rooms: {len(rooms)}, as the picture shows them")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
