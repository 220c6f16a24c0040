#!/usr/bin/env python3
"""Writes libptwm/word_shuffles.h to standard output."""

print("""\
/*
 * For each set of 8 lanes that emit: the byte shuffle that moves their words to the end of 16 bytes, in their order. Entry m has
 * its set bits' numbers, 2 k and 2 k + 1 for bit k, at the end. Made by tools/gen_word_shuffles.py.
 */""")
print("static const uint8_t word_shuffles[256][16] __attribute__((aligned(16))) = {")
for mask in range(256):
    words = [k for k in range(8) if mask >> k & 1]
    places = [0x80] * (16 - 2 * len(words))
    for word in words:
        places += [2 * word, 2 * word + 1]
    print("    { " + ", ".join(str(p) for p in places) + " },")
print("};")
