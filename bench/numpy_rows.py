# Times numpy.ascontiguousarray of a layout in host memory, for clbytes bench,
# which keeps this running and asks for one time after the other:
#   layout REACH ELEMENT OFFSET RANK SHAPE... STRIDES...   answers ok
#   time N   does it N times, and answers the seconds
import sys
from time import perf_counter

import numpy

TYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
base = view = None
print("numpy", numpy.__version__, flush=True)
for line in sys.stdin:
    word, *numbers = line.split()
    numbers = [int(number) for number in numbers]
    if word == "layout":
        reach, element, offset, rank = numbers[:4]
        shape, strides = numbers[4 : 4 + rank], numbers[4 + rank :]
        if base is None or base.size < reach:
            base = view = None
            base = numpy.ones(reach, "u1")
        kind = TYPES.get(element, "V%d" % element)
        view = numpy.ndarray(shape, kind, base, offset, strides)
        # Of what is contiguous already ascontiguousarray makes no copy.
        done = view.flags.c_contiguous
        copy = numpy.array if done else numpy.ascontiguousarray
        print("ok", flush=True)
    else:
        result = None
        start = perf_counter()
        for _ in range(numbers[0]):
            result = copy(view)
        print(perf_counter() - start, flush=True)
        result = None
