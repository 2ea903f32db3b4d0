#!/usr/bin/env python3
"""Prints the KV events of a master, one JSON object a line: subscribe.py tcp://HOST:PORT [COUNT]

Ends after COUNT events, or never. A gap in the sequence is an event of its own, {"lost": n}.
"""

import json
import sys

import msgpack
import zmq


def events(endpoint):
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(endpoint)
    expected = None
    while True:
        _topic, sequence, payload = socket.recv_multipart()
        sequence = int.from_bytes(sequence, "big")
        if expected is not None and sequence != expected:
            yield {"lost": sequence - expected}  # negative: the master has been started again
        expected = sequence + 1
        _timestamp, batch, _rank = msgpack.unpackb(payload)
        yield from batch


def main():
    left = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    for event in events(sys.argv[1]):
        print(json.dumps(event), flush=True)
        left -= 1
        if left == 0:
            return


if __name__ == "__main__":
    main()
