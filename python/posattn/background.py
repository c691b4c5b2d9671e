"""Long calls of the compiled module that save what they have when they are stopped: in a thread of
their own, so that the caller's thread can show progress and see Ctrl-C."""

import atexit
import queue
import threading

from . import _posattn

_END = object()
_running = set()  # the flags that stop them


def _end():
    """Python ends: what daemon threads began is stopped, and saves its checkpoints."""
    for stop in list(_running):
        stop.set()
    _posattn.end()


atexit.register(_end)


def _wait(ended):
    """A second Ctrl-C must not leave the work alone."""
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt:
            continue


def interruptible(work, stop, handle):
    """work(report) in a thread; handle(event) here, for everything it reports. When handle raises,
    or Ctrl-C is pressed, `stop` is set, the work ends in its own time, and the exception goes on."""
    events = queue.SimpleQueue()
    ended = threading.Event()
    result = []
    failure = []

    def body():
        try:
            result.append(work(lambda *event: events.put(event)))
        except BaseException as error:  # raised again below, in the caller's thread
            failure.append(error)
        finally:
            events.put(_END)
            ended.set()

    thread = threading.Thread(target=body, name="posattn")
    _running.add(stop)
    atexit.unregister(_end)  # it comes before what has been registered since, as the removal of
    atexit.register(_end)  # temporary folders
    try:
        thread.start()
        while True:
            event = events.get()
            if event is _END:
                break
            handle(*event)
    except BaseException:
        stop.set()
        if thread.ident is not None:
            _wait(ended)
            thread.join()
        raise
    finally:
        _running.discard(stop)
    thread.join()
    if failure:
        raise failure[0]
    if stop.is_set():  # by _end
        raise SystemExit
    return result[0]
