"""Progress: a bar in a terminal and in a notebook, lines of text on standard error elsewhere."""

import html
import math
import statistics
import sys
import time

from .arguments import instance_of

_WIDTH = 20  # of the bar in a terminal


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


class _Terminal:
    """One line that is written anew."""

    every = 0.2  # seconds

    def __init__(self):
        self._length = 0

    def show(self, share, text):
        filled = int(share * _WIDTH)
        line = "█" * filled + "░" * (_WIDTH - filled) + " " + text
        try:
            line.encode(getattr(sys.stderr, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            line = "#" * filled + "." * (_WIDTH - filled) + " " + text
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def end(self):
        if self._length:
            sys.stderr.write("\n")


class _Notebook:
    """A bar below the cell."""

    every = 0.2

    def __init__(self):
        self._shown = None

    def show(self, share, text):
        from IPython.display import HTML, display

        bar = HTML(f'<progress value="{share:.4f}"></progress> {html.escape(text)}')
        if self._shown is None:
            self._shown = display(bar, display_id=True)
        else:
            self._shown.update(bar)

    def end(self):
        pass


class _Lines:
    """A line now and then, as for a log."""

    every = 5

    def show(self, share, text):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def end(self):
        pass


class Progress:
    """Steps of some work. `show`: None means a bar where somebody sees it, and elsewhere lines once the
    work takes longer than a few seconds."""

    def __init__(self, name, show):
        if show is not None:
            instance_of("progress", show, int, "True or False")
        self._name, self._state, self._written = name, None, None
        self._first, self._started, self._drawn = None, time.monotonic(), time.monotonic()
        live = _is_notebook() or (sys.stderr is not None and sys.stderr.isatty())
        self._always = bool(show) or live  # also the end of short work
        if sys.stderr is None or (show is not None and not show):
            self._display = None
        else:
            self._display = _Notebook() if _is_notebook() else _Terminal() if live else _Lines()

    def update(self, done, total, note=""):
        if self._display is None:
            return
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = done, now
        rate = (done - self._first) / max(now - self._started, 1e-6)
        text = f"{self._name}  {done}/{total} steps"
        if note:
            text += f"  {note}"
        if rate > 0:
            text += f"  {rate:.{1 if rate < 10 else 0}f} steps/s"
            if done < total:
                text += f"  {_duration((total - done) / rate)} left"
        self._state = min(1, done / max(total, 1)), text
        if now - self._drawn >= self._display.every:
            self._draw()
            self._drawn = now

    def _draw(self):
        if self._state != self._written:
            self._display.show(*self._state)
            self._written = self._state

    def close(self):
        if self._state is not None and (self._always or self._written is not None):
            self._draw()
            self._display.end()


class FleetProgress(Progress):
    """The steps of all runs, and the loss of each architecture: the median of its runs that have one."""

    def __init__(self, runs, show):
        super().__init__(counted(runs, "run"), show)
        self._runs, self._latest = runs, {}

    def report(self, progress):
        self._latest[progress["run"]] = progress
        by_architecture = {}
        for _, run in sorted(self._latest.items()):
            losses = by_architecture.setdefault(run["architecture"], [])
            if run["status"] != "running" or not math.isnan(run["train_loss"]):  # else it has only begun
                losses.append(run["train_loss"])
        note = ", ".join(
            f"{statistics.median(losses):.3g}" + (f" ({name})" if len(by_architecture) > 1 else "")
            for name, losses in by_architecture.items() if losses)
        self.update(sum(run["step"] for run in self._latest.values()),
                    self._runs * progress["steps"], note and "loss " + note)
