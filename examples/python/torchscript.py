"""Loads a TorchScript export in PyTorch and prints the best first move.

    pip install torch
    sparring export runs/uttt --format torchscript
    python torchscript.py uttt.pt [path of sparring]
"""

import json
import sys

import torch

from rules import Rules


def main(path, sparring="sparring"):
    extra = {"sparring.json": ""}
    network = torch.jit.load(path, map_location="cpu", _extra_files=extra)
    about = json.loads(extra["sparring.json"])["metadata"]
    actions = json.loads(about["actions"])
    shape = json.loads(about["architecture"])["input"]
    rules = Rules.of(about, sparring)
    planes = torch.tensor(rules.planes()).reshape(1, shape["channels"], shape["height"], shape["width"])
    with torch.no_grad():
        policy, value = network(planes)
    legal = rules.legal()
    best = max(legal, key=lambda move: policy[0, actions.index(move)].item())
    print("best first move:", best)
    print("win, draw, loss:", [round(share, 3) for share in torch.softmax(value[0], 0).tolist()])
    rules.close()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python torchscript.py FILE.pt [path of sparring]")
    main(*sys.argv[1:])
