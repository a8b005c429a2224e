"""Clipper's query contract: ``POST /{application}/predict`` and ``/{application}/update``.

One query as ``input``, several as ``input_batch``; each is a query of its own to the application.

https://github.com/ucbrise/clipper/blob/develop/src/frontends/src/query_frontend.hpp
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count

import msgspec
from starlette.types import Scope

from forecastle.errors import BadInput, ModelNotFound, RequestError
from forecastle.http.clipper_input import JsonError, parse_feedback, parse_query
from forecastle.http.contract import Call, Contract, RequestHeaders, require_post
from forecastle.http.core import Core, Ticket
from forecastle.http.errors import Headers, error_headers
from forecastle.messages import Part, Request, Response
from forecastle.serving.application import Answer, ServedApplication
from forecastle.serving.gather import Gather
from forecastle.serving.ticket import Done, Result

PREDICT, UPDATE = "/predict", "/update"
DEFAULT_HEADER = "Forecastle-Default"
"""Why an answer is the default output; of several answers, the causes of those that are."""

ACCEPT = "application/json, text/plain;q=0.9, */*;q=0.8"
EXPLANATIONS = {
    "deadline": "Failed to retrieve a prediction response within the specified latency SLO",
    "no_replica": "No connected models found for query",
}
"""In Clipper's own words, which its clients look for. Other causes it did not tell apart."""

_JSON = "application/json"
_query_ids = count()


class QueryError(BadInput):
    """A query that was understood, and cannot be answered as it is."""


class Queries:
    """The queries of one HTTP request, as one ticket: ``done`` is called once, when the last is answered."""

    __slots__ = ("_answers", "_done", "_gathers", "_left", "_strict")

    def __init__(self, count_: int, done: Done, *, strict: bool) -> None:
        self._answers: list[Answer | None] = [None] * count_
        self._gathers: list[Gather] = []
        self._left = count_
        self._strict = strict
        self._done = done

    def start(self, application: ServedApplication, requests: list[Request]) -> None:
        """Ask."""
        if not requests:
            self._end(Response(b'{"batch_predictions":[]}', _JSON))
        for i, request in enumerate(requests):
            gather = application.ask(request, partial(self._answered, i))
            if not gather.over:
                self._gathers.append(gather)

    def cancel(self) -> None:
        """The client is gone."""
        for gather in self._gathers:
            gather.cancel()

    def _answered(self, i: int, answer: Answer) -> None:
        self._answers[i] = answer
        self._left -= 1
        if self._left:
            return
        answers = [each for each in self._answers if each is not None]
        self._gathers = []
        causes: dict[str, None] = {}
        for each in answers:
            if each.error is not None and (self._strict or not each.cause):
                self._end(each.error)
                return
            if each.cause:
                causes[each.cause] = None
        self._end(Response(self._body(answers), _JSON, {DEFAULT_HEADER: ", ".join(causes)} if causes else {}))

    def _body(self, answers: list[Answer]) -> bytes:
        if len(answers) == 1:  # Clipper takes a batch of one out of its list, and so its clients expect
            return _body(answers[0])
        return b'{"batch_predictions":[%b]}' % b",".join(map(_body, answers))

    def _end(self, result: Result) -> None:
        done, self._done = (
            self._done,
            _drop,
        )  # what holds this object holds it no more: nothing is left for the collector
        done(result)


def _drop(_: object) -> None:
    """Let go of a second end."""


def contracts(applications: Mapping[str, ServedApplication]) -> tuple[Contract, Contract]:
    """Return the contracts of predict and update over the applications that are registered."""

    def name(scope: Scope) -> str:
        require_post(scope)
        return application_name(scope["path"])

    def model(core: Core, scope: Scope, _: RequestHeaders) -> str:
        found = name(scope)
        if found not in applications:
            raise core.unknown(found)
        return found

    def predict(core: Core, call: Call, done: Done) -> Ticket:
        application = applications.get(call.model)
        if application is None:  # it was deleted while the body came
            raise core.unknown(call.model)
        query = parse_query(call.body, application.input_type)
        if query.version:
            try:
                application.check_version(query.version)
            except (BadInput, ModelNotFound) as error:
                raise QueryError(error.message) from None
        queries = Queries(len(query.inputs), done, strict=_strict(call.headers))
        queries.start(application, [_request(application, call, part, query.version) for part in query.inputs])
        return queries

    def update(core: Core, call: Call, done: Done) -> Ticket:
        application = applications.get(call.model)
        if application is None:
            raise core.unknown(call.model)
        feedback = parse_feedback(call.body, application.input_type)
        request = _request(application, call, feedback.input)
        told = Response(b"Feedback received? 1", "text/plain")
        return application.learn(request, feedback.label, partial(done, told))

    return (
        Contract("/{application}/predict", model, predict, _reply, _fail),
        Contract("/{application}/update", model, update, _reply, _fail),
    )


def application_name(path: str) -> str:
    """Return the first segment of a path."""
    return path[1 : path.index("/", 1)]


def _request(application: ServedApplication, call: Call, part: Part, version: str = "") -> Request:
    deadline = min(call.deadline, call.accepted + application.slo)
    return Request(call.id, "", [part], ACCEPT, deadline, version=version)


def _reply(response: Response) -> bytes:
    return response.body


def _body(answer: Answer) -> bytes:
    default = b"true" if answer.cause else b"false"
    body = b'{"query_id":%d,"output":%b,"default":%b' % (next(_query_ids), answer.output, default)
    if answer.cause:
        body += b',"default_explanation":%b,"default_cause":"%b"' % (
            msgspec.json.encode(_explanation(answer)),
            answer.cause.encode(),
        )
    if answer.confidence is not None:
        body += b',"confidence":%b' % msgspec.json.encode(answer.confidence)
    return body + b"}"


def _explanation(answer: Answer) -> str:
    text = EXPLANATIONS.get(answer.cause, "")
    return text or (answer.error.message if answer.error is not None else answer.cause)


def _strict(headers: RequestHeaders) -> bool:
    """Whether the client would rather have an error than a default (RFC 7240's header with a preference of ours)."""
    prefer = headers.get(b"prefer")
    return prefer is not None and b"default=no" in (each.strip().lower() for each in prefer.split(b","))


def _fail(error: RequestError, request_id: str) -> tuple[int, Headers, bytes]:
    kinds: dict[type[RequestError], str] = {JsonError: "Json error", QueryError: "Query processing error"}
    body = msgspec.json.encode({"error": kinds.get(type(error), error.type), "cause": error.message})
    return error.status, error_headers(error, request_id, len(body)), body
