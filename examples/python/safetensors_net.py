"""Rebuilds a network in PyTorch from a checkpoint or a safetensors export: `net, about = load("uttt.safetensors")`."""

import json
import struct
import sys

import torch
from torch import nn


class Conv(nn.Module):
    """A convolution without bias and its batch normalisation, `conv` and `norm` with a suffix."""

    def __init__(self, inputs, outputs, size):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class Network(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.net, self.input, self.policy = spec["architecture"], spec["input"], spec["policy"]
        net, cells = self.net, self.input["height"] * self.input["width"]
        planes, flat = self.policy["planes"], self.policy["flat"]
        layers = self.layers = nn.ModuleDict()
        if net["type"] == "mlp":
            sizes = [self.input["channels"] * cells] + net["hidden"]
            for i in range(len(sizes) - 1):
                layers["layers-%d" % i] = nn.Linear(sizes[i], sizes[i + 1])
            layers["policy-out"], layers["value-out"] = nn.Linear(sizes[-1], planes * cells + flat), nn.Linear(sizes[-1], 3)
            return
        width = net["channels"]
        layers["stem"] = Conv(self.input["channels"], width, 3)
        for i in range(net["blocks"]):
            layers["blocks-%d-1" % i], layers["blocks-%d-2" % i] = Conv(width, width, 3), Conv(width, width, 3)
            if net["global_pooling"] and i % 2:
                layers["blocks-%d-pool" % i] = nn.Linear(2 * width, width, bias=False)
        layers["policy"], layers["value"] = Conv(width, net["policy_channels"], 1), Conv(width, net["value_channels"], 1)
        if planes:
            layers["policy-spatial"] = nn.Conv2d(net["policy_channels"], planes, 1)
        if flat:
            layers["policy-flat"] = nn.Linear(net["policy_channels"] * cells, flat)
        layers["value-hidden"] = nn.Linear(net["value_channels"] * cells, net["value_hidden"])
        layers["value-out"] = nn.Linear(net["value_hidden"], 3)

    def forward(self, planes):
        """Logits of the moves, `[batch, actions]`, and of win, draw, loss, `[batch, 3]`."""
        at = self.layers
        if self.net["type"] == "mlp":
            x = planes.flatten(1)
            for i in range(len(self.net["hidden"])):
                x = at["layers-%d" % i](x).relu()
            return at["policy-out"](x), at["value-out"](x)
        x = at["stem"](planes).relu()
        for i in range(self.net["blocks"]):
            y = at["blocks-%d-1" % i](x)
            if "blocks-%d-pool" % i in at:
                pooled = torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)
                y = y + at["blocks-%d-pool" % i](pooled)[:, :, None, None]
            x = (x + at["blocks-%d-2" % i](y.relu())).relu()
        features = at["policy"](x).relu()
        parts = [at["policy-spatial"](features).flatten(1)] if self.policy["planes"] else []
        parts += [at["policy-flat"](features.flatten(1))] if self.policy["flat"] else []
        hidden = at["value-hidden"](at["value"](x).relu().flatten(1)).relu()
        return torch.cat(parts, 1), at["value-out"](hidden)


def ours(name):
    """`blocks.0.conv1.weight` in the file is `layers.blocks-0-1.conv.weight` here."""
    *place, kind, part = name.split(".")
    if kind.rstrip("12") in ("conv", "norm"):
        return "layers.%s.%s.%s" % ("-".join(place + [d for d in kind if d.isdigit()]), kind.rstrip("12"), part)
    return "layers.%s.%s" % ("-".join(place + [kind]), part)


def load(path):
    """The network in evaluation mode, and what the file says about it."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), bytearray(file.read())
    about = json.loads(header.pop("__metadata__")["sparring"])["info"]
    state = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        state[ours(name)] = torch.frombuffer(data, dtype=torch.float32, offset=begin, count=(end - begin) // 4).reshape(info["shape"])
    net = Network(about["network"])
    missing = net.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys and all(key.endswith("num_batches_tracked") for key in missing.missing_keys), missing
    return net.eval(), about


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python safetensors_net.py FILE.safetensors")
    network, info = load(sys.argv[1])
    print("%s, %d parameters" % (info["game"], sum(parameter.numel() for parameter in network.parameters())))
