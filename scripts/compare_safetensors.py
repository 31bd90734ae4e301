#!/usr/bin/env python3
"""Compares two safetensors files by the format's own reader.

    compare_safetensors.py A B

Names, dtypes, shapes, every tensor's bytes, and the metadata must be equal.
Prints what differs; exits 1 if anything does.
"""

import sys

from safetensors import deserialize, safe_open


def tensors(path):
    """Name -> (dtype, shape, bytes), each type whether numpy has it or not."""
    with open(path, "rb") as file:
        entries = deserialize(file.read())
    return {
        name: (entry["dtype"], tuple(entry["shape"]), bytes(entry["data"]))
        for name, entry in entries
    }


def metadata(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata() or {}


def differences(path_a, path_b):
    a, b = tensors(path_a), tensors(path_b)
    for name in sorted(a.keys() | b.keys()):
        if name not in a or name not in b:
            yield f"{name}: not in {path_b if name in a else path_a}"
            continue
        for what, of_a, of_b in zip(("dtype", "shape"), a[name], b[name]):
            if of_a != of_b:
                yield f"{name}: {what} {of_a} is not {of_b}"
        if a[name][2] != b[name][2]:
            yield f"{name}: contents differ"
    if metadata(path_a) != metadata(path_b):
        yield f"metadata: {metadata(path_a)} is not {metadata(path_b)}"
    if not a and not b:
        yield "no tensor in either"
    else:
        total = sum(len(data) for _, _, data in a.values())
        print(f"compared {len(a)} tensors, {total} bytes")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = list(differences(sys.argv[1], sys.argv[2]))
    for difference in found:
        print(difference)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
