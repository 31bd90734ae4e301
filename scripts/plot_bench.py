#!/usr/bin/env python3
"""Draws the plot of a run that was saved by clbytes bench --json.

    plot_bench.py RUN.json FILE.svg|FILE.png

The plot is the one that clbytes bench --plot draws, for a run on a machine
that has no gnuplot: the largest size of each layout, beside raw OpenCL.
"""

import json
import subprocess
import sys

BARS = ("ours", "link", "rect", "pageable", "numpy")
TERMINALS = {
    "svg": "svg size 1200,600 dynamic background 'white'",
    "png": "png size 1200,600",
}


def size_text(size):
    if size < 1024:
        return f"{size} bytes"
    units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    size /= 1024
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.1f} {units[0]}"


def quoted(text):
    """As it can stand between gnuplot's quotes."""
    return "".join(c if c >= " " and c not in "'\"\\" else " " for c in text)


def script(run, terminal):
    largest = {}
    for row in run["rows"]:  # sizes grow; each is where its last one is
        largest.pop(row["layout"], None)
        largest[row["layout"]] = row
    yield f"set terminal {terminal}"
    title = quoted(f"{run['device']}, {run['platform']}")
    yield f"set title '{title}' noenhanced"
    yield "set ylabel 'GB/s'"
    yield "set logscale y"
    yield "set grid ytics"
    yield "set style data histogram"
    yield "set style histogram clustered gap 1"
    yield "set style fill solid 0.8 noborder"
    yield "set datafile missing '-'"
    yield "set xtics rotate by 45 right noenhanced"
    yield "set key outside top horizontal"
    yield "$data << END"
    yield "layout " + " ".join(BARS)
    for row in largest.values():
        rates = [row[f"{bar}_gbs"] for bar in BARS]
        yield f'"{quoted(row["layout"])}, {size_text(row["bytes"])}" ' + " ".join(
            "-" if rate is None else f"{rate:.4g}" for rate in rates
        )
    yield "END"
    yield (
        f"plot for [i = 2:{len(BARS) + 1}] $data using i:xtic(1) "
        "title columnheader(i)"
    )


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot_bench.py RUN.json FILE.svg|FILE.png")
    terminal = TERMINALS.get(sys.argv[2].rpartition(".")[2].lower())
    if terminal is None:
        sys.exit(f"plot_bench.py: {sys.argv[2]} ends in neither .svg nor .png")
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            run = json.load(file)
        lines = "\n".join(script(run, terminal)) + "\n"
        with open(sys.argv[2], "wb") as file:
            subprocess.run(
                ["gnuplot"], input=lines.encode(), stdout=file, check=True
            )
    except KeyError as error:
        sys.exit(f"plot_bench.py: {sys.argv[1]} has no {error}")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"plot_bench.py: {error}")


main()
