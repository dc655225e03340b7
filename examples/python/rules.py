"""The rules of a game, from `sparring ugi`: positions as a network sees them, legal moves, results."""

import json
import subprocess


class Rules:
    """A conversation with `sparring ugi GAME PLAYER`; the position is that after the moves played so far."""

    def __init__(self, game, sparring="sparring", player="random"):
        try:
            self.engine = subprocess.Popen(
                [sparring, "ugi", game, player], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        except FileNotFoundError:
            raise SystemExit("there is no program %r: give its path as the last argument" % sparring)
        self.moves = []
        self._say("position startpos")

    @classmethod
    def of(cls, about, sparring="sparring", player="random"):
        """The game of an exported file whose description is `about`."""
        options = ",".join("%s=%s" % option for option in json.loads(about["options"]).items())
        return cls(about["game"] + (":" + options if options else ""), sparring, player)

    def _say(self, line):
        self.engine.stdin.write(line + "\n")

    def _answer(self, begin):
        for line in self.engine.stdout:
            if line.startswith("info string error"):
                raise ValueError(line.strip())
            if line.startswith(begin + " "):
                return line.split(" ", 1)[1].strip()
        raise EOFError("the engine has ended")

    def _ask(self, what):
        self._say("query " + what)
        return self._answer("response")

    def play(self, move):
        self.moves.append(move)
        self._say("position startpos moves " + " ".join(self.moves))

    def restart(self):
        self.moves = []
        self._say("position startpos")

    def best(self):
        """The move that the player would play."""
        self._say("go")
        return self._answer("bestmove")

    def over(self):
        return self._ask("gameover") == "true"

    def result(self):
        """p1win, p2win, draw, or none while the game goes on."""
        return self._ask("result")

    def legal(self):
        return self._ask("legal").split()

    def actions(self):
        """Every move of the game, in the order of a network's policy."""
        return self._ask("actions").split()

    def planes(self):
        """The position as the player to move sees it: channels, then rows, then columns."""
        return [float(number) for number in self._ask("planes").split()]

    def close(self):
        self.engine.stdin.close()
        self.engine.wait()
