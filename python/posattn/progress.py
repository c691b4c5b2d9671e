"""Progress bars: tqdm's where it is installed, in a terminal and in a notebook; else nothing."""

import sys


def _tqdm(show):
    if show is None:
        show = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not show:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class EpochBar:
    """All epochs of a fleet as one bar. `show`: None means where somebody can see it."""

    def __init__(self, runs, show):
        tqdm = _tqdm(show)
        self._bar = tqdm(unit="epoch", desc=f"{runs} run{'' if runs == 1 else 's'}") if tqdm else None
        self._runs = runs
        self._epochs = {}

    def update(self, progress):
        if self._bar is None:
            return
        self._epochs[progress["run"]] = progress["epoch"]
        self._bar.total = self._runs * progress["epochs"]
        self._bar.n = sum(self._epochs.values())
        self._bar.set_postfix(loss=f"{progress['train_loss']:.3g}", refresh=False)
        self._bar.update(0)

    def close(self):
        if self._bar is not None:
            self._bar.close()


class StepBar:
    """One bar of steps."""

    def __init__(self, name, show):
        tqdm = _tqdm(show)
        self._bar = tqdm(unit="step", desc=name) if tqdm else None

    def update(self, step, steps):
        if self._bar is not None:
            self._bar.total, self._bar.n = steps, step
            self._bar.update(0)

    def close(self):
        if self._bar is not None:
            self._bar.close()
