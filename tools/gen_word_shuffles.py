#!/usr/bin/env python3
"""Writes libptwm/x86/word_shuffles.h to standard output: see x86/label_encode_impl.h."""

print("/* Made by tools/gen_word_shuffles.py. */")
print("static const uint8_t word_shuffles[256][16] __attribute__((aligned(16))) = {")
for mask in range(256):
    words = [k for k in range(8) if mask >> k & 1]
    places = [0x80] * (16 - 2 * len(words))
    for word in words:
        places += [2 * word, 2 * word + 1]
    print("    { " + ", ".join(str(p) for p in places) + " },")
print("};")
