"""Compares what clbytes writes and reads with the format's own package.

usage: safetensors_oracle.py SAVE_SAMPLES DIRECTORY [SEED]

SAVE_SAMPLES is the program of tests/save_samples.c.  Contents are computed here
with numpy from the pattern and the layout alone; files that clbytes writes must
be those that the package writes, byte for byte, where it can write them.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.numpy

# The format's name, bits, and the name that the package's writer takes; it has
# none for the six-bit types.
DTYPES = [
    ("U64", 64, "uint64"), ("I64", 64, "int64"), ("F64", 64, "float64"),
    ("C64", 64, "complex64"), ("F32", 32, "float32"), ("U32", 32, "uint32"),
    ("I32", 32, "int32"), ("BF16", 16, "bfloat16"), ("F16", 16, "float16"),
    ("U16", 16, "uint16"), ("I16", 16, "int16"),
    ("F8_E5M2FNUZ", 8, "float8_e5m2fnuz"),
    ("F8_E4M3FNUZ", 8, "float8_e4m3fnuz"), ("F8_E8M0", 8, "float8_e8m0fnu"),
    ("F8_E4M3", 8, "float8_e4m3fn"), ("F8_E5M2", 8, "float8_e5m2"),
    ("I8", 8, "int8"), ("U8", 8, "uint8"), ("F6_E3M2", 6, None),
    ("F6_E2M3", 6, None), ("F4", 4, "float4_e2m1fn_x2"), ("BOOL", 8, "bool"),
]
BITS = {name: bits for name, bits, _ in DTYPES}
SPEC = {name: spec for name, _, spec in DTYPES}
NUMPY = safetensors.numpy._TYPES

NAMES = [
    "", "a", "Z", "a.b", "a\"b", "a\\b", "a/b", "line\nbreak", "tab\there",
    "\x01\x1f\x7f", "\b\f\r", "\u00e9", "\u20ac", "\U0001f600", "e\u0301",
    "\u2028", "layers.0.weight", "layers.10.weight", "layers.2.weight",
    "_metadata__", "dtype", "data_offsets", "x" * 300,
]


class Tensor:
    """A tensor: where it lies, and what its bytes are."""

    def __init__(self, name, dtype, shape, logical, line):
        self.name = name
        self.dtype = dtype
        self.shape = list(shape)
        self.logical = logical
        self.line = line


def hexed(text):
    return text.encode().hex() or "-"


def memory(seed, size):
    i = np.arange(size, dtype=np.uint64)
    sum_ = seed * 131 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29
    return sum_.astype(np.uint8)


def walk(data, shape, strides, elem, offset):
    """The logical bytes, by numpy's own strides."""
    if 0 in shape:
        return b""
    base = np.ndarray(
        shape=tuple(shape) + (elem,), dtype=np.uint8, buffer=data,
        offset=offset, strides=tuple(strides) + (1,))
    return base.tobytes()


def span(shape, strides, elem):
    """Bytes below and above the first element that a layout reaches."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides))
    return -low, high + elem


def packed(shape, elem):
    strides, step = [], elem
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides


def place(rng, name, dtype, shape, strides, kind="buffer", own_shape=False):
    """A tensor of whole-byte elements with these strides, somewhere."""
    bits = BITS[dtype]
    if bits % 8 != 0:  # a byte stands for what 8 / bits elements have
        elem = 1
        file_shape = list(shape)
        file_shape[-1] = file_shape[-1] * 8 // bits
    else:
        elem = bits // 8
        file_shape = list(shape)
    seed = rng.randrange(1000)
    below, above = (0, 0) if 0 in shape else span(shape, strides, elem)
    offset = below + rng.choice([0, 0, 1, elem, 64, rng.randrange(300)])
    size = max(1, offset + above + rng.choice([0, 0, rng.randrange(100)]))
    logical = walk(memory(seed, size), shape, strides, elem, offset)
    start = end = 0
    if kind == "view":
        whole = len(logical)
        start = rng.randrange(whole + 1)
        end = rng.randrange(start, whole + 1)
        end -= (end - start) % elem
        logical = logical[start:end]
        file_shape = [(end - start) // elem]
    if kind == "host":
        size = len(logical)
        logical = memory(seed, size).tobytes()
    told = [-1] if own_shape else [len(file_shape)] + file_shape
    numbers = [start, end, seed, size, elem, offset, len(shape)]
    numbers += list(shape) + list(strides) + told
    line = " ".join([hexed(name), dtype, kind] + [str(n) for n in numbers])
    return Tensor(name, dtype, file_shape, logical, line)


def random_layout(rng, elem):
    rank = rng.randrange(6)
    shape = [rng.choice([0] + [1, 2, 3, 4, 5, 7] * 5) for _ in range(rank)]
    strides = packed([max(1, n) for n in shape], elem)
    order = rng.sample(range(rank), rank)
    kind = rng.randrange(4)
    if kind > 0:  # permuted, then padded
        step = elem
        for d in order:
            strides[d] = step
            step *= max(1, shape[d])
            if kind > 1:
                step += rng.choice([0, 1, elem, 16])
    for d in range(rank):
        if rng.randrange(6) == 0:
            strides[d] = -strides[d]
        if rng.randrange(10) == 0:
            strides[d] = 0
        if shape[d] <= 1 and rng.randrange(2):
            strides[d] = rng.randrange(-10**9, 10**9)
    return shape, strides


def fixed_model(rng):
    """Every dtype in every kind of layout, in no order."""
    tensors = []
    for dtype, bits, spec in DTYPES:
        if spec is None:
            continue
        elem = max(1, bits // 8)
        shapes = [
            ([6, 4], packed([6, 4], elem)),
            ([6, 4], [4 * elem + 3, elem]),
            ([6, 4], [elem, 6 * elem]),
            ([2, 3, 4, 4], [48 * elem, elem, 12 * elem, 3 * elem]),
            ([8], [-elem]),
            ([0, 8], [1, 1]),
        ]
        for i, (shape, strides) in enumerate(shapes):
            tensors.append(place(rng, "%s %d" % (dtype.lower(), i), dtype,
                                 shape, strides, own_shape=bits >= 8))
        if bits >= 8:
            tensors.append(place(rng, dtype + " scalar", dtype, [], []))
    rng.shuffle(tensors)
    return tensors


def names_model(rng):
    tensors = []
    for name in NAMES:
        dtype = rng.choice(["F32", "U8", "BF16"])
        elem = BITS[dtype] // 8
        tensors.append(place(rng, name, dtype, [3], [elem]))
    rng.shuffle(tensors)
    return tensors


def random_model(rng):
    tensors = []
    for i in range(rng.randrange(25)):
        dtype = rng.choice([n for n, bits, _ in DTYPES if bits >= 8])
        shape, strides = random_layout(rng, BITS[dtype] // 8)
        kind = rng.choice(["buffer", "buffer", "view", "host"])
        own = kind == "buffer" and rng.randrange(2) == 0
        name = "%s%d" % (rng.choice(NAMES)[:20], i)
        tensors.append(place(rng, name, dtype, shape, strides, kind, own))
    return tensors


def python_file(tensors, metadata):
    """What the format's own package writes for the same tensors."""
    kept, specs = [], {}
    for tensor in tensors:
        data = np.frombuffer(tensor.logical, dtype=np.uint8).copy()
        kept.append(data)
        shape = list(tensor.shape)
        if tensor.dtype == "F4":
            shape[-1] //= 2
        specs[tensor.name] = safetensors.TensorSpec(
            dtype=SPEC[tensor.dtype], shape=shape,
            data_ptr=data.ctypes.data if data.size else 0,
            data_len=data.nbytes)
    # No metadata is None: an empty dictionary is written wrong by 0.8.0.
    return bytes(safetensors.serialize(specs, metadata or None))


def divided(sizes, most):
    """Names shard by shard, as huggingface_hub divides: an oversized one is
    closed at once, the one that is being filled when the next does not fit."""
    shards, filling, filled = [], [], 0
    for name, size in sizes:
        if size > most:
            shards.append([name])
        elif filled + size > most:
            shards.append(filling)
            filling, filled = [name], size
        else:
            filling.append(name)
            filled += size
    return shards + [filling] if filling else shards


class Checks:
    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.passed = 0

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments, table=""):
        done = subprocess.run(
            [self.program, *arguments], input=table.encode(),
            stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit("%s %s: exit status %d" % (
                self.program, " ".join(arguments), done.returncode))
        return done.stdout.decode()

    def equal(self, what, got, expected):
        if got != expected:
            show = [repr(x)[:2000] for x in (got, expected)]
            if isinstance(got, bytes):
                at = next((i for i, (a, b) in enumerate(zip(got, expected))
                           if a != b), min(len(got), len(expected)))
                show = ["%d bytes, %r from byte %d" % (
                    len(x), x[max(0, at - 40):at + 40], at)
                    for x in (got, expected)]
            sys.exit("%s: got %s\nexpected %s" % (what, show[0], show[1]))
        self.passed += 1

    def read_by_python(self, what, path, tensors, metadata):
        """The package reads what was meant."""
        with open(path, "rb") as file:
            found = dict(safetensors.deserialize(file.read()))
        self.equal(what + ": names", sorted(found),
                   sorted(t.name for t in tensors))
        for t in tensors:
            of = "%s: %r" % (what, t.name)
            self.equal(of + ": dtype", found[t.name]["dtype"], t.dtype)
            self.equal(of + ": shape", found[t.name]["shape"], t.shape)
            self.equal(of, bytes(found[t.name]["data"]), t.logical)
        with safetensors.safe_open(path, framework="np") as file:
            self.equal(what + ": metadata", file.metadata() or {}, metadata)
            for t in tensors:
                if t.dtype in NUMPY:
                    array = file.get_tensor(t.name)
                    self.equal(what + ": array", array.tobytes(), t.logical)
                    self.equal(what + ": array", list(array.shape), t.shape)

    def read_by_us(self, what, path, tensors, metadata):
        lines = ["@ %s %s" % (hexed(k), hexed(v)) for k, v in metadata.items()]
        listed = self.run("--list", path).splitlines()
        # Tensors come in the order of their data: ours in that of the file.
        for t in tensors:
            shape = [str(n) for n in [len(t.shape)] + t.shape]
            lines.append(" ".join([hexed(t.name), t.dtype] + shape +
                                  [t.logical.hex() or "-"]))
        self.equal(what + ": listed", sorted(listed), sorted(lines))

    def model(self, what, tensors, metadata):
        ours, theirs = self.path("ours"), self.path("theirs")
        table = ["@ %s %s" % (hexed(k), hexed(v)) for k, v in metadata.items()]
        table += [t.line for t in tensors]
        self.run("--save", ours, table="\n".join(table) + "\n")
        self.read_by_python(what, ours, tensors, metadata)
        self.read_by_us(what, ours, tensors, metadata)
        if any(SPEC[t.dtype] is None for t in tensors):
            return
        expected = python_file(tensors, metadata)
        with open(ours, "rb") as file:
            self.equal(what + ": file", file.read(), expected)
        # The other way: theirs opens in ours, and is saved as it is.
        with open(theirs, "wb") as file:
            file.write(expected)
        self.read_by_us(what + " of python", theirs, tensors, metadata)
        self.run("--again", theirs, self.path("again"))
        with open(self.path("again"), "rb") as file:
            self.equal(what + ": saved again", file.read(), expected)

    def shards(self, what, tensors, metadata, size):
        """A set: its index as Python's json writes it, each shard as the
        package writes it alone, all of it as one by us.  The tensors come in
        the order of the file that they are from."""
        folder = tempfile.mkdtemp(dir=self.directory)
        whole = os.path.join(folder, "whole")
        with open(whole, "wb") as file:
            file.write(python_file(tensors, metadata))
        self.run("--shards", str(size), whole,
                 os.path.join(folder, "m.safetensors"))
        order = [bytes.fromhex(line.split()[0].strip("-")).decode()
                 for line in self.run("--list", whole).splitlines()
                 if not line.startswith("@")]
        of = {t.name: t for t in tensors}
        places = divided([(n, len(of[n].logical)) for n in order], size)
        number = len(places)
        self.equal(what + ": several", number > 1, True)
        names = ["m-%05d-of-%05d.safetensors" % (i + 1, number)
                 for i in range(number)]
        index = {
            "metadata": {"total_size": sum(len(t.logical) for t in tensors)},
            "weight_map": {n: name for name, inside in zip(names, places)
                           for n in inside}}
        path = os.path.join(folder, "m.safetensors.index.json")
        with open(path, encoding="ascii") as file:
            self.equal(what + ": index", file.read(),
                       json.dumps(index, indent=2, sort_keys=True) + "\n")
        self.equal(what + ": files", sorted(os.listdir(folder)),
                   sorted(names + ["whole", os.path.basename(path)]))
        for name, inside in zip(names, places):
            shard = [of[n] for n in inside]
            self.read_by_python(what, os.path.join(folder, name), shard,
                                metadata)
            with open(os.path.join(folder, name), "rb") as file:
                self.equal(what + ": shard", file.read(),
                           python_file(shard, metadata))
        self.read_by_us(what, path, tensors, metadata)
        # As Python writes it without an indent, in another order.
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"weight_map": index["weight_map"], "metadata": {
                "total_size": 1.5, "nested": [{}, None]}}, file,
                ensure_ascii=False)
        self.read_by_us(what + " of python", path, tensors, metadata)

    def numpy_files(self):
        """Files of the package's own numpy writer, arrays and all."""
        arrays = {
            "weight": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
            "bias": np.array(1.5, dtype=np.float64),
            "mask": np.array([True, False, True]),
            "none": np.zeros((0, 3), dtype=np.int64),
            "half": np.linspace(0, 1, 7).astype(np.float16),
            "wave": np.exp(1j * np.arange(5)).astype(np.complex64),
        }
        names = {np.dtype(of).name: name for name, of in NUMPY.items()}
        tensors = [
            Tensor(name, names[a.dtype.name], a.shape, a.tobytes(), None)
            for name, a in arrays.items()]
        for metadata in ({}, {"format": "np"}):
            path = self.path("numpy")
            safetensors.numpy.save_file(arrays, path, metadata or None)
            self.read_by_us("numpy", path, tensors, metadata)
            self.run("--again", path, self.path("again"))
            with open(path, "rb") as a, open(self.path("again"), "rb") as b:
                self.equal("numpy: saved again", b.read(), a.read())
            loaded = safetensors.numpy.load_file(self.path("again"))
            for name, array in arrays.items():
                np.testing.assert_array_equal(loaded[name], array)
                self.equal("numpy: dtype", loaded[name].dtype, array.dtype)


def main():
    checks = Checks(sys.argv[1], sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 22
    rng = random.Random(seed)
    print("safetensors %s, numpy %s, seed %d" % (
        safetensors.__version__, np.__version__, seed))
    checks.model("empty", [], {})
    checks.model("metadata alone", [], {"only": "metadata"})
    checks.model("every dtype", fixed_model(rng), {"format": "pt"})
    checks.model("names", names_model(rng), {"q\"\n\x01\u00e9": "\\\U0001f600"})
    # The package's order of two pairs and more is random: read, not compared.
    six_bits = [
        place(rng, "six %d" % i, dtype, [5, 3 * i], [3 * i + 1, 1])
        for i, dtype in enumerate(["F6_E3M2", "F6_E2M3"] * 2)]
    checks.model("six bits", six_bits, {"b": "1", "a": "2", "": ""})
    for i in range(12):
        metadata = {"round": str(i)} if i % 2 else {}
        checks.model("random %d" % i, random_model(rng), metadata)
    checks.numpy_files()
    known = [t for t in fixed_model(rng) if SPEC[t.dtype] is not None]
    for size in (1, 40, 200):
        checks.shards("shards of %d" % size, known, {"format": "pt"}, size)
        checks.shards("named %d" % size, names_model(rng), {}, size // 4 + 1)
    print("%d comparisons agree" % checks.passed)


if __name__ == "__main__":
    main()
