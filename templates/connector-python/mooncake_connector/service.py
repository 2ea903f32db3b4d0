"""A Source behind the gRPC contract."""

import contextlib
import hashlib
import json
import logging
import threading
import time

import grpc

from .contract import MAX_DOCUMENT, Config, ConfigError, Conflict, Document, Kind, ReadOnly, Unavailable
from .v1 import connector_pb2 as pb
from .v1 import connector_pb2_grpc

HEARTBEAT = 10.0  # seconds; the contract names it

log = logging.getLogger("connector")


class Service(connector_pb2_grpc.ConnectorServicer):
    """Answers the master's calls, which come from several threads."""

    def __init__(self, source_class: type, stopped: threading.Event):
        self._class, self._stopped = source_class, stopped
        self._lock = threading.Lock()
        self._configured = None  # guarded by _lock; a _Configured, None before the first Configure
        self._saving = threading.Lock()  # held during a save, so that Stop does not cut it short

    def Describe(self, request, context):
        d = self._class.description
        absent = pb.ABSENT_MEANS_EMPTY if d.absent_is_empty else pb.ABSENT_MEANS_ERROR
        return pb.DescribeResponse(
            name=d.name,
            version=d.version,
            options_schema=json.dumps(d.options_schema) if d.options_schema else "",
            absent_means=absent,
            capabilities=pb.Capabilities(writable=d.writable, watches=d.watches),
        )

    def Configure(self, request, context):
        try:
            source = self._class(Config(request.uri, request.cluster_id, dict(request.options)))
        except ConfigError as error:
            notes = [pb.ConfigNote(field=field, message=message) for field, message in error.notes.items()]
            return pb.ConfigureResponse(notes=notes)
        with self._lock:
            former, self._configured = self._configured, _Configured(source)
        if former:
            former.retire()
        # Options may be secret to some; their names are not.
        log.info("configured", extra={"cluster_id": request.cluster_id, "options": sorted(request.options)})
        return pb.ConfigureResponse()

    @contextlib.contextmanager
    def _source(self, context):
        """The source of now, which is not closed while it is used."""
        with self._lock:
            configured = self._configured
            if configured:
                configured.enter()
        if not configured:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not configured yet")
        try:
            yield configured
        finally:
            configured.leave()

    def Load(self, request, context):
        with self._source(context) as configured:
            try:
                document = configured.source.load()
                _check(document)
            except Exception as error:
                return pb.LoadResponse(unavailable=_unavailable(_as_unavailable(error)))
            return pb.LoadResponse(present=True, document=document.content, revision=document.revision)

    def Save(self, request, context):
        with self._source(context) as configured, self._saving:
            try:
                revision = configured.source.save(request.document, request.expected_revision)
                return pb.SaveResponse(outcome=pb.SAVE_OUTCOME_SAVED, revision=revision)
            except Conflict as error:
                outcome, reason = pb.SAVE_OUTCOME_CONFLICT, str(error)
            except ReadOnly as error:
                outcome, reason = pb.SAVE_OUTCOME_READ_ONLY, str(error)
            except Exception as error:
                outcome, reason = pb.SAVE_OUTCOME_UNAVAILABLE, _as_unavailable(error).reason
            return pb.SaveResponse(outcome=outcome, reason=reason)

    def Watch(self, request, context):
        box = _Outbox(request.from_revision)
        if not context.add_callback(box.close):  # ended already
            return
        follower = threading.Thread(target=self._follow, args=(box, context), daemon=True)
        follower.start()
        try:
            yield pb.WatchResponse(heartbeat=pb.Heartbeat())
            beat = time.monotonic() + HEARTBEAT
            while not box.closed():
                event = box.take(beat - time.monotonic())
                if event is not None:
                    yield event
                elif time.monotonic() >= beat:
                    yield pb.WatchResponse(heartbeat=pb.Heartbeat())
                    beat = time.monotonic() + HEARTBEAT
        finally:
            box.close()
            follower.join()
        if box.failure:
            context.abort(grpc.StatusCode.UNAVAILABLE, box.failure)

    def _follow(self, box, context):
        """Runs the author's watch, again after every Configure, until the box is closed."""
        try:
            while not box.closed():
                with self._lock:
                    configured = self._configured
                    if configured:
                        configured.enter()
                if not configured:
                    raise RuntimeError("not configured yet")
                try:
                    view = _View(box, configured)
                    box.shown_by(view)
                    configured.source.watch(view)
                    if not view.ended():
                        raise RuntimeError("the source stopped watching")
                finally:
                    configured.leave()
        except Exception as error:
            log.exception("watching ended")
            box.fail(f"{type(error).__name__}: {error}")

    def Stop(self, request, context):
        with self._saving, self._lock:
            former, self._configured = self._configured, None
        if former:
            former.retire()
        self._stopped.set()
        return pb.StopResponse()


class _Configured:
    """A source and who uses it; closed when it is retired and the last user has left."""

    def __init__(self, source):
        self.source = source
        self.retired = False
        self._users = 1
        self._lock = threading.Lock()
        self._views = []  # guarded by _lock

    def enter(self):
        with self._lock:
            self._users += 1

    def leave(self):
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.source.close()

    def show(self, view):
        with self._lock:
            if not self.retired:
                self._views.append(view)
                return
        view.end()

    def forget(self, view):
        with self._lock:
            if view in self._views:
                self._views.remove(view)

    def retire(self):
        with self._lock:
            self.retired = True
            views, self._views = self._views, []
        for view in views:
            view.end()
        self.leave()


class _View:
    """What one run of the author's watch talks to: it ends with the stream and with the configuration."""

    def __init__(self, box, configured):
        self._box, self._over = box, threading.Event()
        self._configured = configured
        configured.show(self)

    def end(self):
        self._over.set()

    def ended(self):
        if self._over.is_set():
            self._configured.forget(self)
        return self._over.is_set()

    def wait(self, seconds):
        self._over.wait(seconds)
        return self.ended()

    def snapshot(self, document):
        try:
            _check(document)
        except Unavailable as why:
            return self.unavailable(why)
        if not self.ended():
            self._box.snapshot(document)

    def unavailable(self, why):
        if not self.ended():
            self._box.unavailable(why)


class _Outbox:
    """Holds the newest event of a stream until it can be sent; what is overtaken is dropped."""

    def __init__(self, revision):
        self._bell = threading.Condition()
        # All guarded by _bell.
        self._pending = None  # a message to be sent
        self._told = revision or None  # what was said last: a revision, or kind and reason
        self._closed = False
        self._view = None
        self.failure = ""

    def snapshot(self, document):
        with self._bell:
            if self._told == document.revision:
                return
            self._told = document.revision
            self._pending = document
            self._bell.notify_all()

    def unavailable(self, why):
        with self._bell:
            if self._told == (why.kind, why.reason):
                return
            self._told = (why.kind, why.reason)
            self._pending = why
            self._bell.notify_all()

    def take(self, seconds):
        """The message to send, None when there is none for so long, or the stream is over."""
        with self._bell:
            if self._pending is None and not self._closed and seconds > 0:
                self._bell.wait(seconds)
            event, self._pending = self._pending, None
        if isinstance(event, Document):
            # Made here and not in the author's thread, so that a storm does not hash what is never sent.
            digest = hashlib.sha256(event.content).digest()
            snapshot = pb.Snapshot(document=event.content, revision=event.revision, sha256=digest)
            return pb.WatchResponse(snapshot=snapshot)
        if event is not None:
            return pb.WatchResponse(unavailable=_unavailable(event))
        return None

    def shown_by(self, view):
        with self._bell:
            self._view = view
            if self._closed:
                view.end()

    def closed(self):
        with self._bell:
            return self._closed

    def close(self):
        with self._bell:
            self._closed = True
            if self._view:
                self._view.end()
            self._bell.notify_all()

    def fail(self, reason):
        with self._bell:
            self.failure = reason
        self.close()


def _check(document):
    if not document.revision:
        raise Unavailable(Kind.INVALID, "the connector gave a document without a revision")
    if len(document.content) > MAX_DOCUMENT:
        raise Unavailable(Kind.INVALID, f"the document has {len(document.content)} bytes, at most {MAX_DOCUMENT} can be carried")


def _as_unavailable(error):
    if isinstance(error, Unavailable):
        return error
    log.error("unexpected failure", exc_info=error)
    return Unavailable(Kind.UNREACHABLE, f"{type(error).__name__}: {error}")


_KINDS = {
    Kind.UNREACHABLE: pb.UNAVAILABLE_KIND_UNREACHABLE,
    Kind.ABSENT: pb.UNAVAILABLE_KIND_ABSENT,
    Kind.AUTH: pb.UNAVAILABLE_KIND_AUTH,
    Kind.INVALID: pb.UNAVAILABLE_KIND_INVALID,
    Kind.PERMANENT: pb.UNAVAILABLE_KIND_PERMANENT,
}


def _unavailable(why):
    return pb.Unavailable(kind=_KINDS[why.kind], reason=why.reason, retryable=why.kind != Kind.PERMANENT)
