#!/usr/bin/env python3
"""Prints the tables of docs/records/vulkan.md from what `caldera kernels --json` says.

  benches/kernel_tables.py DIR [--before DIR] [--into docs/records/vulkan.md]

DIR holds a file TASK-CARD.json a task (train, train-f16, decode) and card (7900xtx, 9070xt, rtx4090, h100), each the output of

  caldera kernels --device vulkan --config benches/llama-1b.json --task TASK --card CARD --json

on a driver for that card; docs/guide/vulkan.md says which ones need no card. With --before, times of an earlier state stand
beside those of now. With --into, the tables replace those between the file's marks.
"""

import argparse
import contextlib
import io
import json
import pathlib

TASKS = {
    "train": "LoRA step, 8 x 512 tokens",
    "train-f16": "the same in f16",
    "decode": "token, 2048 positions",
}
CARDS = {"7900xtx": "RX 7900 XTX", "9070xt": "RX 9070 XT", "rtx4090": "RTX 4090", "h100": "H100"}
CODE_OF = {"7900xtx": "navi31", "9070xt": "gfx1201", "rtx4090": "nvk"}  # whose code is shown


def read(folder, task, card):
    path = pathlib.Path(folder) / f"{task}-{card}.json"
    return json.loads(path.read_text()) if path.exists() else None


def milliseconds(kernels):
    return sum(k["reckoned_us"] for k in kernels) / 1000


def number(value):
    return "-" if value is None else f"{value:g}"


def short(name, most=44):
    return name if len(name) <= most else name[: most - 1] + "…"


def total_table(folder, before):
    print("| task | card | dispatches | barriers |" + (" before, ms | now, ms | times less |" if before else " ms |"))
    print("|---|---|---:|---:|" + ("---:|---:|---:|" if before else "---:|"))
    for task, title in TASKS.items():
        for card, card_title in CARDS.items():
            now = read(folder, task, card)
            if now is None:
                continue
            row = f"| {title} | {card_title} | {sum(k['dispatches'] for k in now)} | {sum(k['barriers'] for k in now)} |"
            past = read(before, task, card) if before else None
            if past is not None:
                row += f" {milliseconds(past):.2f} | {milliseconds(now):.2f} | {milliseconds(past) / milliseconds(now):.1f} |"
            elif before:
                row += f" - | {milliseconds(now):.2f} | - |"
            else:
                row += f" {milliseconds(now):.2f} |"
            print(row)
    print()


def kernel_table(folder, task):
    """A row a kernel, in the order of the first driver; drivers whose devices get other kernels add rows."""
    by_card = {}
    order = []
    for card in CARDS:
        for kernel in read(folder, task, card) or []:
            key = (kernel["kernel"], kernel["variant"], kernel["dims"])
            if key not in order:
                order.append(key)
            by_card.setdefault(card, {}).setdefault(key, []).append(kernel)
    cards = [card for card in CARDS if card in by_card]
    shown = [card for card in cards if card in CODE_OF]
    print(f"{TASKS[task]}; registers / spills / shared memory in bytes / occupancy, and microseconds of all dispatches:\n")
    print("| kernel | dims | count |" + "".join(f" {CODE_OF[c]} |" for c in shown) + "".join(f" {CARDS[c]} |" for c in cards))
    print("|---|---|---:|" + "---|" * len(shown) + "---:|" * len(cards))
    for key in order:
        some = next(by_card[c][key] for c in cards if key in by_card[c])
        for i in range(len(some)):
            name, variant, dims = key
            row = f"| `{short(name)}`{', ' + variant if variant else ''} | {dims} | {some[i]['dispatches']} |"
            found = {c: by_card[c][key][i] for c in cards if len(by_card[c].get(key, [])) > i}
            for card in shown:
                k = found.get(card)
                fields = ("registers", "spills", "shared_bytes", "occupancy")
                row += " - |" if k is None else " " + " / ".join(number(k[f]) for f in fields) + " |"
            for card in cards:
                k = found.get(card)
                row += " - |" if k is None else f" {k['reckoned_us']:.0f} |"
            print(row)
    print()


def replace_tables(path, tables):
    text = path.read_text()
    begin, end = "<!-- kernel_tables.py begins -->\n", "<!-- kernel_tables.py ends -->"
    head, rest = text.split(begin)
    path.write_text(head + begin + tables.strip() + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--before", metavar="DIR", help="the same of an earlier state")
    parser.add_argument("--into", type=pathlib.Path, metavar="FILE", help="put the tables there")
    args = parser.parse_args()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        total_table(args.folder, args.before)
        for task in ("train", "decode"):
            kernel_table(args.folder, task)
    if args.into is None:
        print(printed.getvalue(), end="")
    else:
        replace_tables(args.into, printed.getvalue())


if __name__ == "__main__":
    main()
