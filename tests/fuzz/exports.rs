//! Exported networks for the corpus.

use sparring::export::{Request, export};
use sparring::games::tictactoe::TicTacToe;
use sparring::net::{Checkpoint, FileKind, OnnxForm};

use super::seeds::{Seed, file, seed};

/// Files of each format and form, sound and not.
pub fn exports(checkpoint: &Checkpoint) -> Vec<Seed> {
    let made = |format, half, mask| {
        let form = OnnxForm { half, mask };
        file(|path| {
            let request = Request { format, form, path: path.to_owned(), force: true, positions: 10 };
            export(&TicTacToe, checkpoint, &request, &|| false).unwrap();
        })
    };
    let (onnx, script) = (made(FileKind::Onnx, false, false), made(FileKind::TorchScript, false, false));
    // As long as what it replaces, so that no length changes.
    let replaced = |bytes: &[u8], from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    vec![
        seed("bad-onnx-cut", &onnx[..onnx.len() / 2]),
        seed("bad-onnx-foreign", replaced(&onnx, "\x08sparring\x12", "\x08sporring\x12")),
        seed("bad-onnx-operation", replaced(&onnx, "\x04Relu", "\x04Tanh")),
        seed("bad-torchscript-code", replaced(&script, "torch.relu", "torch.tanh")),
        seed("bad-torchscript-cut", &script[..script.len() / 2]),
        seed("bad-torchscript-entry", replaced(&script, "\"tensors\":{", "\"tensors\":[")),
        seed("valid-onnx-half", made(FileKind::Onnx, true, false)),
        seed("valid-onnx-half-mask", made(FileKind::Onnx, true, true)),
        seed("valid-onnx-mask", made(FileKind::Onnx, false, true)),
        seed("valid-onnx", onnx),
        seed("valid-torchscript", script),
    ]
}
