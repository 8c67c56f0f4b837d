"""One process of rq: fills its queue, works it off, waits for jobs, or submits them.

Started by `cargo xtask bench` with a redis socket. Speaks in the words of the bench's other
processes: ready, idle, begun; a line on its input lets it begin.
"""

import sys

from redis import Redis
from rq import Queue, SimpleWorker


def nothing():
    """The job of a task without work."""


def tell():
    """A job that says when it has begun."""
    print("begun", flush=True)


class Waiting(SimpleWorker):
    """Says when it has nothing to do."""

    def dequeue_job_and_maintain_ttl(self, *args, **kwargs):
        print("idle", flush=True)
        return super().dequeue_job_and_maintain_ttl(*args, **kwargs)


def be_ready():
    print("ready", flush=True)
    sys.stdin.readline()


def main(duty, socket, *rest):
    connection = Redis(unix_socket_path=socket)
    queue = Queue("bench", connection=connection)
    if duty == "fill":
        for _ in range(int(rest[0])):
            queue.enqueue("rq_peer.nothing")
    elif duty == "drain":
        worker = SimpleWorker([queue], connection=connection)
        be_ready()
        worker.work(burst=True, logging_level="ERROR")
    elif duty == "await":
        Waiting([queue], connection=connection).work(logging_level="ERROR")
    elif duty == "submit":
        print("ready", flush=True)
        for _ in sys.stdin:
            queue.enqueue("rq_peer.tell")
    elif duty == "left":
        print(len(queue))


if __name__ == "__main__":
    main(*sys.argv[1:])
