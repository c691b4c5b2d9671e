"""posattn run --level mpi: a program's machines as ranks that send each other real messages."""

import json
import re
import unittest

from mpirun import MpirunCase


class MpcRanks(MpirunCase):
    def test_the_answer_of_interpreter_and_network(self):
        program = ["run", "list-ranking", "--input=2,0,3,-1", "--json"]
        text, errors = self.mpirun(0, 4, *program, "--level", "mpi")
        outputs = {level: json.loads(self.run_ok(*program, "--level", level))["output"]
                   for level in ["mpc", "static", "network"]}
        outputs["mpi"] = json.loads(text)["output"]
        for level, output in outputs.items():
            self.assertEqual(output, outputs["mpc"], level)
        self.assertRegex(errors, r"^4 machines, \d+ rounds, [1-9]\d* messages; .* s = \d+ words\n$")
        sent, received, limit = map(int, re.findall(r"(?:at most|s =) (\d+)", errors))
        self.assertLessEqual(max(sent, received), limit)

    def test_two_messages_for_one_word(self):
        (self.folder / "p.par").write_text("word x : int[0..9] = input\nsend y = x to x\noutput y\n")
        _, errors = self.mpirun(4, 3, "run", "p.par", "--input", "0,2,2", "--level", "mpi")
        self.assertEqual(errors.count("error: "), 1, errors)
        self.assertIn("machine 2 receives 2 messages for 'y' in round 0", errors)

    def test_the_wrong_number_of_ranks(self):
        right = "mpirun -n 3 posattn run sort --input 3,1,2 --level mpi"
        command = ["run", "sort", "--input", "3,1,2", "--level", "mpi"]
        self.run_error(2, *command, message=["has 3 machines here, and there is 1 rank", right])
        _, errors = self.mpirun(2, 2, *command)
        self.assertEqual(errors.count("error: "), 1, errors)
        self.assertIn(right, errors)


if __name__ == "__main__":
    unittest.main()
