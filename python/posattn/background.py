"""Long calls of the compiled module, in a thread of their own, so that the caller's thread can show
progress and hear Ctrl-C."""

import queue
import threading

_END = object()


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
    thread.start()
    try:
        while True:
            event = events.get()
            if event is _END:
                break
            handle(*event)
    except BaseException:
        stop.set()
        _wait(ended)
        thread.join()
        raise
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
