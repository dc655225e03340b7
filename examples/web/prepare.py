"""Puts what the page needs into a folder, to be served by any web server.

    npm install onnxruntime-web
    python prepare.py NETWORK FOLDER [path of sparring]
    python -m http.server --directory FOLDER

NETWORK is a checkpoint, a run or an exported file. The page gets it as ONNX, with the start position of its game.
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

from rules import Rules  # noqa: E402


def main(network, folder, sparring="sparring"):
    runtime = os.path.join(os.getcwd(), "node_modules", "onnxruntime-web", "dist")
    if not os.path.isdir(runtime):
        sys.exit("there is no %s: run `npm install onnxruntime-web` in this folder first" % runtime)
    os.makedirs(folder, exist_ok=True)
    about = json.loads(subprocess.check_output([sparring, "inspect", network]))["checkpoint"]
    target = os.path.join(folder, "network.onnx")
    subprocess.check_call([sparring, "export", network, "--format", "onnx", "--with-mask", "--force", "-o", target])
    rules = Rules(about["game"], sparring)
    shape = about["network"]["input"]
    start = {
        "game": about["game"],
        "shape": [1, shape["channels"], shape["height"], shape["width"]],
        "planes": rules.planes(),
        "legal": rules.legal(),
        "actions": rules.actions(),
    }
    rules.close()
    with open(os.path.join(folder, "start.json"), "w") as file:
        json.dump(start, file)
    shutil.copy(os.path.join(HERE, "index.html"), folder)
    for name in ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]:
        shutil.copy(os.path.join(runtime, name), folder)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python prepare.py NETWORK FOLDER [path of sparring]")
    main(*sys.argv[1:])
