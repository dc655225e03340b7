"""Runs a TorchScript export and the network rebuilt from safetensors on the same planes.

    torch_check.py FILE.pt SOURCE.safetensors
"""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))

from safetensors_net import load  # noqa: E402

script = torch.jit.load(sys.argv[1])
assert not script.training
network, about = load(sys.argv[2])
shape = about["network"]["input"]
torch.manual_seed(1)
with torch.no_grad():
    for batch in [1, 2, 7, 256]:
        planes = (torch.rand(batch, shape["channels"], shape["height"], shape["width"]) < 0.3).float()
        for ours, theirs in zip(script(planes), network(planes)):
            apart = (ours - theirs).abs().max().item()
            assert apart < 1e-4, "batch %d: %g" % (batch, apart)
print("equal")
