"""Progress on standard error: tqdm's bar where it is installed, else lines of text."""

import statistics
import sys
import time

from .arguments import instance_of


def _is_notebook():
    return "ipykernel" in sys.modules


def counted(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def _duration(seconds):
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole // 60 % 60:02} min"


class Line:
    """As the program has it: one line that is written anew on a terminal or in a notebook, a line
    every few seconds elsewhere."""

    def __init__(self, name):
        self._name, self._text, self._written = name, "", None
        self._live = sys.stderr.isatty() or _is_notebook()
        self._first, self._started, self._drawn = None, time.monotonic(), time.monotonic()

    def update(self, done, total, note):
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = done, now
        rate = (done - self._first) / max(now - self._started, 1e-6)
        self._text = f"{self._name}  {done}/{total} steps"
        if note:
            self._text += f"  {note}"
        if rate > 0:
            self._text += f"  {rate:.{1 if rate < 10 else 0}f} steps/s"
            if done < total:
                self._text += f"  {_duration((total - done) / rate)} left"
        if now - self._drawn >= (0.2 if self._live else 5):
            self._write()
            self._drawn = now

    def _write(self):
        if self._text == self._written:
            return
        rest = " " * (len(self._written or "") - len(self._text))
        sys.stderr.write(f"\r{self._text}{rest}" if self._live else self._text + "\n")
        sys.stderr.flush()
        self._written = self._text

    def close(self):
        if self._text:
            self._write()
            if self._live:
                sys.stderr.write("\n")


class _Tqdm:
    def __init__(self, tqdm, name):
        self._bar = tqdm(unit="step", desc=name)

    def update(self, done, total, note):
        self._bar.total, self._bar.n = total, done
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(0)

    def close(self):
        self._bar.close()


class Progress:
    """Steps of some work. `show`: None means where somebody can see it, in a terminal and in a
    notebook."""

    def __init__(self, name, show):
        self._display = None
        if show is not None:
            instance_of("progress", show, int, "True or False")
        if show is None:
            show = sys.stderr is not None and (sys.stderr.isatty() or _is_notebook())
        if not show or sys.stderr is None:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._display = Line(name)
        else:
            self._display = _Tqdm(tqdm, name)

    def update(self, done, total, note=""):
        if self._display is not None:
            self._display.update(done, total, note)

    def close(self):
        if self._display is not None:
            self._display.close()


class FleetProgress(Progress):
    """The steps of all runs, and the loss of each architecture: the median of its runs."""

    def __init__(self, runs, show):
        super().__init__(counted(runs, "run"), show)
        self._runs, self._latest = runs, {}

    def report(self, progress):
        self._latest[progress["run"]] = progress
        by_architecture = {}
        for _, run in sorted(self._latest.items()):
            by_architecture.setdefault(run["architecture"], []).append(run["train_loss"])
        note = "loss " + ", ".join(
            f"{statistics.median(losses):.3g}" + (f" ({name})" if len(by_architecture) > 1 else "")
            for name, losses in by_architecture.items())
        self.update(sum(run["step"] for run in self._latest.values()),
                    self._runs * progress["steps"], note)
