"""Checks an ONNX file with the checker of ONNX, and runs it beside the weights it was made from, in numpy's float64.

    onnx_check.py FILE.onnx SOURCE.safetensors BOUND
"""

import json
import struct
import sys

import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

file, weights, bound = sys.argv[1], sys.argv[2], float(sys.argv[3])
model = onnx.load(file)
onnx.checker.check_model(model, full_check=True)
inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
named = {info.name for info in model.graph.value_info} | {info.name for info in model.graph.output}
assert all(output in named for node in model.graph.node for output in node.output), "a value without a shape"

session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
about = session.get_modelmeta().custom_metadata_map
shape = json.loads(about["architecture"])["input"]
actions = len(json.loads(about["actions"]))
with open(weights, "rb") as source:
    (length,) = struct.unpack("<Q", source.read(8))
    assert json.loads(json.loads(source.read(length))["__metadata__"]["architecture"])["input"] == shape
random = numpy.random.default_rng(1)
reference = ReferenceEvaluator(model)
for batch in [1, 2, 7, 256]:
    feed = {"planes": (random.random([batch, shape["channels"], shape["height"], shape["width"]]) < 0.3).astype(numpy.float32)}
    if about["outputs"] == "probabilities":
        feed["legal"] = random.random([batch, actions]) < 0.5
        feed["legal"][:, 0] = True
    policy, value = session.run(["policy", "value"], feed)
    assert policy.shape == (batch, actions) and value.shape == (batch, 3)
    if about["outputs"] == "probabilities":
        assert numpy.allclose(policy.sum(1), 1, atol=1e-3) and (policy[~feed["legal"]] == 0).all()
    # The evaluator of ONNX is slow, and exact in what each operation means.
    if batch <= 7:
        for ours, theirs in zip((policy, value), reference.run(["policy", "value"], feed)):
            apart = numpy.abs(ours - theirs).max()
            assert apart < bound, "batch %d: %g" % (batch, apart)
    # Each position by itself gives the same.
    one = {name: array[:1] for name, array in feed.items()}
    assert numpy.abs(session.run(["policy"], one)[0] - policy[:1]).max() < bound
print("checked, shapes inferred")
