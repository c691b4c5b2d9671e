"""Ctrl-C, and the end of Python, while the compiled half is at work: in processes of their own."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SIZES = "length=8, width=64, mlp_width=64"
LONG = {  # calls that take minutes
    "run": f"posattn.new('sort', {SIZES})(numpy.zeros((10**7, 8), numpy.float32))",
    "gradient": f"posattn.new('sort', {SIZES}).gradient(*[numpy.zeros((3 * 10**6, 8))] * 2)",
    "evaluate": f"posattn.new('sort', {SIZES}).evaluate(range(1, 1000), samples=10**6)",
    "verify": "posattn.compile('sort', length=64).verify(samples=10**6)",
    "interpreter": "posattn.compile('sort', length=64).run(numpy.zeros((10**5, 64)), level='mpc')",
    "compile": "posattn.compile('cumulative-sum', length=2**19)",
    "training data": f"posattn.train('sort', samples=5 * 10**6, {SIZES})",
    "training step": f"posattn.train('sort', samples=10**6, batch=10**6, {SIZES})",
    "training tests": f"posattn.train('sort', epochs=1, samples=100, batch=100, test_samples=3 * 10**6, "
                      f"{SIZES})",
    "bound": "run = posattn.train('sort', length=8, epochs=1, samples=100, batch=100, test_samples=4)[0]; "
             "[posattn.bound(run, fresh_samples=10**7) for _ in range(10**4)]",
    "trace": "[posattn.compile('sort', length=256).trace(numpy.zeros(256)) for _ in range(10**4)]",
    "activations": f"[posattn.new('sort', {SIZES}).run(numpy.zeros((10**4, 8)), keep='all') "
                   "for _ in range(10**4)]",
    "samples": "posattn.samples('sort', length=8, samples=10**7)",
    "certify": f"posattn.certify(posattn.train('sort', epochs=1, samples=1000, batch=100, "
               f"test_samples=4, {SIZES})[0], steps=10**7)",
}


def begun(code):
    """A process that says when it begins `code`."""
    return subprocess.Popen(
        [sys.executable, "-B", "-c", "import numpy, posattn, sys, threading, time\n" + code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


class CtrlC(unittest.TestCase):
    def test_every_long_call_ends_soon(self):
        for name, call in LONG.items():
            with self.subTest(name), begun(
                    "print('begun', flush=True)\n"
                    f"try:\n    {call}\nexcept KeyboardInterrupt:\n"
                    "    print(time.monotonic(), posattn.compile('sort', 4).model([4, 3, 2, 1]))\n"
            ) as process:
                process.stdout.readline()
                time.sleep(0.4)
                self.assertIsNone(process.poll(), "it ended before")
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                said, problem = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 0, problem)
                self.assertIn("[1. 2. 3. 4.]", said)
                # About a tenth of a second; a busy machine may take longer, but not minutes.
                self.assertLess(float(said.split()[0]) - sent, 15)

    def test_a_handler_that_raises_nothing_lets_the_call_go_on(self):
        with begun("import signal\n"
                   "signal.signal(signal.SIGINT, lambda *_: print('noted', flush=True))\n"
                   "print('begun', flush=True)\n"
                   f"x = posattn.new('sort', {SIZES}).evaluate([1, 2], samples=50000)\n"
                   "print(x['x'].tolist())\n") as process:
            process.stdout.readline()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            said, problem = process.communicate(timeout=60)
        self.assertEqual(said, "noted\n[1.0, 2.0]\n", problem)

    def test_one_inside_a_task_stays_one(self):
        for call in ("posattn.samples(task, 4, 10)",
                     "posattn.train(task, length=4, epochs=1, out=sys.argv[1])"):
            with tempfile.TemporaryDirectory(prefix="posattn-python-") as folder:
                code = ("import posattn, sys\n"
                        "calls = []\n"
                        "def solve(x):\n"
                        "    calls.append(x)\n"
                        "    if len(calls) > 1:\n"
                        "        raise KeyboardInterrupt\n"
                        "    return x\n"
                        "task = posattn.Task('interrupted', solve)\n"
                        "try:\n"
                        f"    {call}\n"
                        "except KeyboardInterrupt:\n"
                        "    print('stayed')\n"
                        "print(posattn.compile('sort', 4).model([4, 3, 2, 1]))\n")
                done = subprocess.run([sys.executable, "-B", "-c", code, folder], text=True,
                                      capture_output=True, timeout=60)
                self.assertEqual(done.stdout, "stayed\n[1. 2. 3. 4.]\n", done.stderr)

    def test_a_run_that_was_stopped_in_its_tests_goes_on_with_the_same_bits(self):
        code = """
import os, signal, sys, time
import numpy, posattn
armed = []
def solve(x):
    if armed and abs(x).max() > 3:  # beyond the training range: a test
        armed.clear()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
    return numpy.sort(x, 1)
task = posattn.Task("stopped-in-tests", solve)
settings = dict(length=4, epochs=3, samples=64, batch=16, width=8, mlp_width=8, test_samples=3000,
                test_every=2, validation_samples=8, threads=1)
whole = posattn.train(task, **settings)[0]
armed.append(True)
try:
    posattn.train(task, out=sys.argv[1], **settings)
except posattn.Interrupted:
    stopped = posattn.load_fleet(sys.argv[1])[0]
    print(stopped.status, stopped.epoch)
again = posattn.resume(sys.argv[1])[0]
print(again.status, again.epoch, again.model.to_bytes() == whole.model.to_bytes(),
      [numpy.array_equal(ours, theirs, equal_nan=True)
       for ours, theirs in zip(again.tests(epoch=2) + again.tests(), whole.tests(epoch=2) + whole.tests())],
      numpy.array_equal(again.history["train_loss"], whole.history["train_loss"]))
"""
        with tempfile.TemporaryDirectory(prefix="posattn-python-") as folder:
            done = subprocess.run([sys.executable, "-B", "-c", code, folder], text=True,
                                  capture_output=True, timeout=120)
        self.assertEqual(done.stdout.splitlines(),
                         ["interrupted 1", "done 3 True [True, True, True, True] True"], done.stderr)


class TheEndOfPython(unittest.TestCase):
    """A daemon thread is at work when the main thread ends."""

    def check(self, call):
        with begun(f"def work():\n    while True:\n        {call}\n"
                   "threading.Thread(target=work, daemon=True).start()\n"
                   "time.sleep(0.4)\n") as process:
            started = time.monotonic()
            said, problem = process.communicate(timeout=60)
            self.assertEqual((process.returncode, said, problem), (0, "", ""))
            self.assertLess(time.monotonic() - started, 10)

    def test_training_saves_its_checkpoints(self):
        with tempfile.TemporaryDirectory(prefix="posattn-python-") as folder:
            self.check(f"posattn.train('sort', epochs=10**6, {SIZES}, samples=100, batch=50, "
                       f"out={folder!r})")
            self.assertIn("checkpoint.safetensors", os.listdir(f"{folder}/positional-seed0"))

    def test_what_atexit_calls_may_use_a_model(self):
        with begun("import atexit\n"
                   "atexit.register(lambda: print(model([1, 2, 3, 4]).shape))\n"
                   "model = posattn.train('sort', length=4, epochs=1, samples=20, batch=10, width=8,\n"
                   "                      mlp_width=8, test_samples=4, validation_samples=4)[0].model\n"
                   ) as process:
            said, problem = process.communicate(timeout=60)
        self.assertEqual((said, problem), ("(4,)\n", ""))

    def test_all_other_calls(self):
        for name in ("run", "verify", "certify"):
            with self.subTest(name):
                self.check(LONG[name])


if __name__ == "__main__":
    unittest.main()
