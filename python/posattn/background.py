"""Long calls of the compiled module, in a thread of their own, so that the caller's thread can show
progress and hear Ctrl-C."""

import queue
import threading

_END = object()


def interruptible(work, stop, handle):
    """work(report) in a thread; handle(event) here, for everything it reports. When handle raises,
    or Ctrl-C is pressed, `stop` is set, the work ends in its own time, and the exception goes on."""
    events = queue.SimpleQueue()
    result = []
    failure = []

    def body():
        try:
            result.append(work(lambda *event: events.put(event)))
        except BaseException as error:  # raised again below, in the caller's thread
            failure.append(error)
        finally:
            events.put(_END)

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
        thread.join()
        raise
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
