"""Plays a whole game with an exported network and prints its moves.

    pip install onnxruntime numpy
    sparring export runs/uttt --format onnx
    python onnx_game.py uttt.onnx [path of sparring]
"""

import json
import sys

import numpy
import onnxruntime

from rules import Rules


def main(network, sparring="sparring"):
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    actions = json.loads(about["actions"])
    inputs = {entry.name: entry.shape for entry in session.get_inputs()}
    rules = Rules.of(about, sparring)
    while not rules.over():
        legal = rules.legal()
        planes = numpy.array(rules.planes(), numpy.float32).reshape([1] + inputs["planes"][1:])
        feed = {"planes": planes}
        if "legal" in inputs:
            feed["legal"] = numpy.zeros([1, len(actions)], bool)
            feed["legal"][0, [actions.index(move) for move in legal]] = True
        policy, value = session.run(["policy", "value"], feed)
        move = max(legal, key=lambda move: policy[0, actions.index(move)])
        shares = value[0]
        if about["outputs"] == "logits":
            shares = numpy.exp(shares - shares.max())
        print("%s  win, draw, loss: %s" % (move, numpy.round(shares / shares.sum(), 2)))
        rules.play(move)
    print("%d moves, %s" % (len(rules.moves), rules.result()))
    rules.close()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python onnx_game.py FILE.onnx [path of sparring]")
    main(*sys.argv[1:])
