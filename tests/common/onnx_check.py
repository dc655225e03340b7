"""Checks an ONNX file with the checker of ONNX, runs it in onnxruntime beside the reference evaluator of ONNX, and compares the best
moves of a thousand positions with those of the network it was made from, as `sparring ugi` plays them.

    onnx_check.py FILE.onnx SOURCE.safetensors SPARRING BOUND LEAST
"""

import json
import os
import sys

import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))

from rules import Rules  # noqa: E402

file, source, sparring, bound, least = sys.argv[1:4] + [float(sys.argv[4]), int(sys.argv[5])]
POSITIONS = 1000
model = onnx.load(file)
onnx.checker.check_model(model, full_check=True)
inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
named = {info.name for info in model.graph.value_info} | {info.name for info in model.graph.output}
assert all(output in named for node in model.graph.node for output in node.output), "a value without a shape"

session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
about = session.get_modelmeta().custom_metadata_map
shape = json.loads(about["architecture"])["input"]
moves = json.loads(about["actions"])
actions = len(moves)
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

# Positions of games in which every fifth move is a random one.
rules = Rules.of(about, sparring, source + "@policy@precision=f32")
assert rules.actions() == moves
same = 0
for _ in range(POSITIONS):
    if rules.over():
        rules.restart()
    legal = rules.legal()
    planes = numpy.array(rules.planes(), numpy.float32).reshape(1, shape["channels"], shape["height"], shape["width"])
    feed = {"planes": planes}
    if about["outputs"] == "probabilities":
        feed["legal"] = numpy.isin(moves, legal).reshape(1, actions)
    policy = session.run(["policy"], feed)[0][0]
    theirs, ours = max(legal, key=lambda move: policy[moves.index(move)]), rules.best()
    same += theirs == ours
    rules.play(ours if random.random() < 0.8 else str(random.choice(legal)))
rules.close()
assert same >= least, "the same best move in %d of %d positions" % (same, POSITIONS)
print("checked, the same best move in %d of %d" % (same, POSITIONS))
