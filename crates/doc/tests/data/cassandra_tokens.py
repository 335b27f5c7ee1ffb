"""Writes cassandra_tokens.txt with the tokens that the Python driver of Cassandra computes.

pip install cassandra-driver; python cassandra_tokens.py > cassandra_tokens.txt
"""

import random
import uuid

from cassandra.metadata import Murmur3Token

MASK = (1 << 64) - 1


def keys(count):
    """The keys of the test: of 1 to 48 bytes, every other one with nothing but high bytes."""
    state = 0x9E3779B97F4A7C15
    for i in range(count):
        key = bytearray()
        for _ in range(i % 48 + 1):
            state = (state * 6364136223846793005 + 1442695040888963407) & MASK
            key.append((state >> 56) | (0x80 if i % 2 else 0))
        yield bytes(key)


def main():
    named = [b"a", "é".encode(), "😀".encode() * 5, b"\x80", b"\xff" * 15, b"\xff" * 16, b"\xff" * 17, bytes(16), uuid.UUID(int=1).bytes]
    named += [n.to_bytes(4, "big", signed=True) for n in (0, 1, -1, 128, -(2**31), 2**31 - 1)]
    named += [n.to_bytes(8, "big", signed=True) for n in (0, 1, -1, 2**53 + 1, -(2**63), 2**63 - 1)]
    chance = random.Random(7)
    named += [bytes(chance.randrange(256) for _ in range(length)) for length in range(1, 40)]
    for key in named:
        print(f"token {key.hex()} {Murmur3Token.hash_fn(key)}")
    # Of 10,000 keys only the sums are kept, each token in its place: one for every thousand.
    sum = 0
    for i, key in enumerate(keys(10_000), 1):
        sum = (sum * 31 + Murmur3Token.hash_fn(key)) & MASK
        if i % 1000 == 0:
            print(f"sum {i} {sum}")


main()
