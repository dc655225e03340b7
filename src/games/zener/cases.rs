//! Sequences of moves that bring out one rule each, with what must hold after them.

/// A sequence of moves from the standard start and what must hold after it.
pub struct Case {
    pub name: &'static str,
    pub moves: &'static str,
    pub first_to_move: bool,
    pub legal: &'static str,
    pub result: &'static str,
}

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    // one free move; 13 moves
    Case {
        name: "first-turn",
        moves: "",
        first_to_move: true,
        legal: "g1f1 g1g2 g2f2 g2g1 g2g3 g3f3 g3g2 g3g4 g4f4 g4g3 g4g5 g5f5 g5g4",
        result: "none",
    },
    // only the black wave
    Case {
        name: "reply-is-compulsory",
        moves: "g3f3",
        first_to_move: false,
        legal: "a3a2 a3a4 a3b3",
        result: "none",
    },
    // four black pieces
    Case {
        name: "free-move-excludes-the-piece-just-moved",
        moves: "g3f3 a3b3",
        first_to_move: false,
        legal: "a1a2 a1b1 a2a1 a2a3 a2b2 a4a3 a4a5 a4b4 a5a4 a5b5",
        result: "none",
    },
    // white must move the circle, black's last
    Case {
        name: "next-turn",
        moves: "g3f3 a3b3 a5b5",
        first_to_move: true,
        legal: "g1f1 g1g2",
        result: "none",
    },
    // the white wave may step back to g3
    Case {
        name: "backward-allowed",
        moves: "g3f3 a3b3 a5b5 g1f1",
        first_to_move: true,
        legal: "f3e3 f3f2 f3f4 f3g3 g2f2 g2g1 g2g3 g4f4 g4g3 g4g5 g5f5 g5g4",
        result: "none",
    },
    // the piece is home again; it is black's turn
    Case {
        name: "backward-done",
        moves: "g3f3 a3b3 a5b5 g1f1 f3g3",
        first_to_move: false,
        legal: "b3a3 b3b2 b3b4 b3c3",
        result: "none",
    },
    // no draw yet
    Case {
        name: "second-occurrence",
        moves: "g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1 g3f3",
        first_to_move: false,
        legal: "a3a2 a3a4 a3b3",
        result: "none",
    },
    // no draw yet
    Case {
        name: "one-before-third-occurrence",
        moves: "g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1 g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1",
        first_to_move: true,
        legal: "g2f2 g2g1 g2g3 g3f3 g3g2 g3g4 g4f4 g4g3 g4g5 g5f5 g5g4",
        result: "none",
    },
    // draw: the position after the first move stands for the third time
    Case {
        name: "third-occurrence",
        moves: "g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1 g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1 g3f3",
        first_to_move: false,
        legal: "",
        result: "draw",
    },
    // see the name
    Case {
        name: "backward-black",
        moves: "g5g4 a1b1 a2a1 g4g3 b1a1",
        first_to_move: false,
        legal: "a3a2 a3a4 a3b3 a4a3 a4a5 a4b4 a5a4 a5b5",
        result: "none",
    },
    // see the name
    Case {
        name: "backward-white",
        moves: "g5f5 a1b1 a3a2 g3f3 f5g5",
        first_to_move: false,
        legal: "b1a1 b1b2 b1c1",
        result: "none",
    },
    // see the name
    Case {
        name: "blocked-on-the-far-row",
        moves: "g5f5 a1a2 a4a5 g2g1 g4g3 a3a2 g1g2 a5a4 a5a4 g1f1 f5e5 a4a3 f1e1 g3g2 a2a3 g3g2 e1d1 \
            a4a5 d1c1 a2a3 e5f5 g2f2 a3a2 f5f4 f2g2 a3a2 a3a2 c1c2 f4g4 a2a1 c2b2 g2g3 a2a1 a5b5 \
            b2a2 a1a2",
        first_to_move: true,
        legal: "g3f3 g3g2 g3g4",
        result: "none",
    },
    // see the name
    Case {
        name: "cap-end-of-turn",
        moves: "g2g1 a4b4 a3a4 g3g2 g1g2 b4a4 a1a2 g5g4 g2f2 a4a5 a4a5 g2f2 g4f4 a2a3 a2a3 g4g5 f2g2 \
            a5b5 a5b5 f2g2 g1g2 a5a4 a3a2 g5g4 f4g4 a3a4 b5c5 g2g3 b5c5 g3f3 c5b5 g2g1 c5b5 a2a1 \
            g2g1 a4a3 g4g5 g4g5 a1b1 a4a3 f3f2 g5g4 b1b2 b5b4 f2f3 a3a2 a3a2 g5g4 f3f2 b2a2 f2f3 \
            b4b5 g4g5 a2a3 g4f4 f3f4 a2a3 g5g4 f4g4 a2a3 b5b4 f4g4 b5b4 g1g2 g1g2 b4a4 g4g5 a4b4 \
            g4g5 a3a4 b4a4 g5g4 b4c4 g2g1 g4g3 c4c3 g1f1 g3g4 a4a5 g2g1 f1g1 c3c4 a3a4 g4f4 a4a5 \
            g4g5 f4f3 a4a5 a3a2 f3e3 a5b5 a5b5 g5f5 e3e4 c4c5 g1f1 f5g5 b5c5 b5c5 e4e5 g5g4 c5c4 \
            e5e4 g4g5 c5b5 a5b5 g1f1 e4d4 c4d4 c5b5 f1e1 a2a1 e1f1 b5b4 g5g4 a1a2 g5g4 f1e1 b5b4 \
            b5b4 e1f1 d4e4 d4d5 g4f4 a2b2 e4f4 d5d4 g4f4 b4b5 b2b1 f1e1 b4b5 b1a1 f1e1 b4b5 a1a2 \
            e1f1 b5b4 b5b4 e1f1 f4e4 b5c5 f4f3 d4d5 f1f2 b4a4 a2a1 f4f3 f2e2 a4a5 c5d5 e4e3 f3e3 \
            a1b1 f3e3 e2d2 a5b5 b4b5 f1e1 d2e2 e3e2 e3d3 b1b2 d5d4 e3d3 e1e2 b5c5 d4d5 d3d2 e2d2 \
            c5d5 e2d2 d3d2 b2c2 b5a5 e2e1 d2d1 c2d2 d5c5 d1e1 d2d3 c5d5 e1d1 d3e3 d2d1 e1d1 a5a4 \
            e3f3 d1e1 a4b4 d5e5 d2d1 e1d1 b4b5 d5e5 d2d1 d5e5 b5a5 e5d5 e5d5",
        first_to_move: true,
        legal: "",
        result: "draw",
    },
    // see the name
    Case {
        name: "cap-mid-turn",
        moves: "g4f4 a2b2 a1b1 g5g4 g2g1 a4a5 a3b3 g3g2 f4f5 b2b3 a5b5 g1g2 f5e5 b3c3 a5b5 g1g2 e5d5 \
            c3b3 b5b4 g2g1 g2g3 b5c5 b1c1 g4g3 g2f2 b4a4 g1f1 g3g4 c1b1 b3b4 d5e5 f1f2 a4a5 b4b3 \
            e5e4 f2e2 a5a4 b3a3 e4e3 e2f2 a4b4 a3a4 e3e4 g4g5 b1a1 b3a3 f2g2 b4b5 a3a2 f2f3 g2f2 \
            b5c5 a1b1 g5g4 f2e2 c5b5 a2b2 f3f2 g4g3 b1b2 b5b4 e2e1 e4e3 a4b4 c5c4 e3e4 b4a4 c4c3 \
            e4f4 a4a3 b2b1 g3g4 f2g2 b2c2 b4c4 e1e2 g3f3 c3b3 c4c3 e2f2 f3f2 b3c3 a3b3 f4f3 g4g5 \
            b1b2 c2b2 g2g1 f3g3 b3b2 c3b3 f2f1 f2f3 c3c4 b3b2 f1f2 g3g4 c4d4 f3f2 g1f1 b2b1 f2g2 \
            d4d5 b2b3 g4f4 g2g3 d5e5 b1c1 f2f3 g3g2 e5e4 b3c3 f4g4 f1f2 b2a2 c1b1 f3f2 g4g3 c3b3 \
            a2b2 f2g2 b1a1 e4d4 f2g2 b2a2 b3b4 g3g4 g2f2 a2b2 b4a4 g4f4 g2f2 a1b1 d4d5 g2g3 f4f3 \
            a4b4 d5e5 g3g2 f2f1 b1b2 e5f5 g2f2 f1g1 b2b3 b2b3 f3f2 b4b3 b2c2 g5g4 f2f3 b3b4 b3b2 \
            f2g2 f5e5 b4b3 f3e3 g2f2 e5d5 b3a3 e3e2 g4g3 c2c3 b3b2 g1g2 f2g2 d5c5 a3a2 e2e3 g2g1 \
            c5d5 b2b3 g2g3 e3e2 a2a3 b2a2 f2f1 g3g4 b3c3 a3a4 e2f2 g4g5 c3d3 a2b2 f1g1 g5g4 d3d2 \
            d5e5 f2f1 a4b4 b2b3 g1g2 g4g3 d2d3 b3c3 g2f2 f1e1 b4c4 d3d2 g3g4",
        first_to_move: true,
        legal: "",
        result: "draw",
    },
];
