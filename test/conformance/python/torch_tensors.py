"""Tensors of torch, by DLPack: described, copied, shared and sent from one process to another as they lie.

usage: torch_tensors.py        (ends with "torch: N tensors, N right")
"""
import multiprocessing
import os
import sys

import torch
import ucx_layout

MAKERS = {
    "column": lambda tensor: tensor[:, 5],
    "transposed": lambda tensor: tensor.t(),
    "every third row": lambda tensor: tensor[::3],
    "permuted": lambda tensor: tensor.reshape(-1, 4, 2).permute(2, 0, 1),
    "expanded": lambda tensor: tensor[:1].expand(50, 8),
    "diagonal": torch.diagonal,
    "one element": lambda tensor: tensor[3, 3],
}
TYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
ROWS = 3000


def whole(kind):
    return torch.arange(ROWS * 8).reshape(ROWS, 8).remainder(251).to(kind)


def as_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def copied(tensor):
    """By gather, and by copy into a tensor with other strides."""
    packed = bytearray(tensor.nbytes)
    ucx_layout.gather(tensor, packed)
    spread = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)[..., 1]
    ucx_layout.copy(tensor, spread)
    return bytes(packed) == bytes(as_bytes(tensor).tolist()) and torch.equal(spread, tensor)


def send_all(port):
    with ucx_layout.listen(port) as peer:
        for kind in TYPES:
            for make in MAKERS.values():
                peer.send(make(whole(kind)))
        peer.exchange(b"")


def receive_all(port):
    right = []
    with ucx_layout.connect("localhost", port) as peer:
        for kind in TYPES:
            for make in MAKERS.values():
                expected = make(whole(kind))
                target = torch.zeros((*expected.shape, 2), dtype=kind)
                peer.recv(target[..., 0])
                right.append(torch.equal(target[..., 0], expected) and not target[..., 1].any())
        peer.exchange(b"")
    return right


def main():
    right = [copied(make(whole(kind))) for kind in TYPES for make in MAKERS.values()]
    port = 10_000 + os.getpid() % 20_000
    other = multiprocessing.get_context("spawn").Process(target=send_all, args=(port,), daemon=True)
    other.start()
    right += receive_all(port)
    other.join(30)
    print(f"torch: {len(right)} tensors, {sum(right)} right")
    sys.exit(not all(right) or other.exitcode != 0)


if __name__ == "__main__":
    main()
