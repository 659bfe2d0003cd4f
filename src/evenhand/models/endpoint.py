"""Hosted models behind an OpenAI-compatible interface: vLLM, llama.cpp, and services."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Final

import httpx
import stamina

from evenhand.core.digests import digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.http import (
    CompressedResponseError,
    HttpConnection,
    describe_plain_http,
    make_client,
    read_api_key,
    sanitize_message,
)
from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request
from evenhand.core.seeds import derive_seed
from evenhand.generation.spec_checks import check_control_code, refuse_iterations
from evenhand.models.openai_format import (
    INSTRUCTION,
    LONGEST_WAIT,
    OPTIONAL,
    HostResponse,
    RetryError,
    TokenBudget,
    close_overdue,
    error_message,
    parse_retry_after,
    parse_target,
    read_answer,
    request_body,
    retry_pause,
)
from evenhand.text.sentences import first_sentence_end

ATTEMPTS: Final = 6
FIRST_WAIT: Final = 0.5

_SEEDS: Final = 2**31
_FRAME: Final = 1 << 18
"""Response bytes besides the text: what a host adds, or the page with which a proxy refuses."""
_TOKEN: Final = 1 << 10
"""Maximum bytes per requested token: the longest token of published vocabularies, as JSON escapes."""
_ESCAPED: Final = 6
"""JSON bytes per byte of a prompt, for hosts that echo it."""
# Every request would fail this way: the address, the key or the interface is wrong.
_FATAL: Final = frozenset({301, 302, 303, 307, 308, 401, 404, 405})
_Job = tuple[int, Request, int]
"""The index of a shard, with a request and a sample number from it."""
_Jobs = SimpleQueue[_Job | None]
"""None tells a worker thread to stop."""
_Arrival = tuple[int, Completion] | Exception
_log = logging.getLogger(__name__)


class EndpointModel:
    """A model behind an HTTP API. Its texts are not reproducible, so ``ref.repeatable`` is False.

    Every sample is one request with its own seed. Timeouts, 429 and 5xx are retried with growing
    pauses, ``Retry-After`` is honoured, redirects are not followed. A request that fails gives a completion
    with a failure code: ``timeout``, ``connection``, ``http_500``, ``bad_answer``, ``too_large``,
    ``refused``, ``content_filter``, ``token_cap``.

    Args:
        name: ``URL#MODEL``; the URL is that of the interface, such as ``http://localhost:8000/v1``.
        chat: Whether to use chat messages; by default what the URL says, else plain completions.
        api_key_env: The environment variable with the key; no key is sent if it is unset.
        concurrency: Number of concurrent requests.
        timeout: Maximum seconds for one request.
        max_tokens_total: No request is sent that could bring this object's token count above the limit.
        execution: With ``offline``, only hosts on this machine are contacted.
    """

    def __init__(
        self,
        name: str,
        *,
        chat: bool | None = None,
        api_key_env: str = "EVENHAND_API_KEY",
        concurrency: int = 16,
        timeout: float = 60.0,
        max_tokens_total: int | None = None,
        execution: Execution | None = None,
    ) -> None:
        self._target = parse_target(name, chat=chat)
        if execution is not None and execution.offline and not self._target.is_local:
            raise InputError(
                f"{self._target.url} is another host, and the run is offline",
                expected="a host on this machine",
                fix="remove --offline, or name a local server",
            )
        if concurrency < 1 or not timeout > 0:
            raise InputError(
                f"concurrency is {concurrency} and timeout {timeout}",
                expected="concurrency of 1 or more, a timeout above 0 seconds",
                fix="change them",
            )
        self._key_env, self._concurrency, self._timeout = api_key_env, concurrency, timeout
        self._budget = TokenBudget(max_tokens_total)
        self._ssl, self._lock = httpx.create_ssl_context(), threading.Lock()
        self._secret, self._has_answered = "", False
        self._logged_kinds: set[str] = set()
        self._served_by: dict[str, str] = {}
        options = {"interface": "completions"}
        if self._target.chat:
            options = {"interface": "chat", "instruction": digest(INSTRUCTION)}
        self.ref = ModelRef("endpoint", self._target.name, options=options, repeatable=False)

    @property
    def served_by(self) -> Mapping[str, str]:
        """The host's latest report on itself: full model name, fingerprint. Not part of the identity."""
        return dict(self._served_by)

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec unchanged; an error for sampling options that no host supports."""
        refuse_iterations(spec, self.ref.name)
        if spec.control_code is not None:
            check_control_code(spec.control_code, (), self.ref.name)
        return spec

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they arrive, one for each request and sample."""
        yield from (done for _, done in self._iterate_completions([requests], spec, {}))

    def generate_each(
        self, shards: Iterable[Sequence[Request]], spec: GenerationSpec
    ) -> Iterator[tuple[int, Sequence[Completion]]]:
        """The completions of each shard, with its index, as they finish.

        Requests of the next shards are sent while one shard is still awaited: a shard may have fewer requests
        than ``concurrency``.
        """
        sizes: dict[int, int] = {}
        completions: defaultdict[int, list[Completion]] = defaultdict(list)
        for place, done in self._iterate_completions(shards, spec, sizes):
            completions[place].append(done)
            if len(completions[place]) == sizes[place]:
                yield place, completions.pop(place)

    def _iterate_completions(
        self, shards: Iterable[Sequence[Request]], spec: GenerationSpec, sizes: dict[int, int]
    ) -> Iterator[tuple[int, Completion]]:
        """Completions as they arrive, each with the index of its shard, whose size is recorded first."""
        self.resolved(spec)
        self._secret = read_api_key(self._key_env)
        if self._secret and not (self._target.is_local or self._target.url.startswith("https:")):
            self._log_once("key", describe_plain_http(self._key_env, self._target.url))
        later = _list_jobs(shards, sizes)
        jobs, arrived = _Jobs(), SimpleQueue[_Arrival]()
        # Twice as many jobs as workers are queued, so that no worker waits for the caller.
        first = list(islice(later, 2 * self._concurrency))
        for job in first:
            jobs.put(job)
        expected, workers = len(first), min(self._concurrency, len(first))
        connections: list[HttpConnection] = []
        threads = [
            threading.Thread(target=self._work, args=(jobs, spec, arrived.put, connections), daemon=True)
            for _ in range(workers)
        ]
        # One extra thread closes overdue connections, so that no worker waits for ever.
        late = partial(close_overdue, connections, threads, seconds=self._timeout)
        for thread in (*threads, threading.Thread(target=late, daemon=True)):
            thread.start()
        try:
            while expected:
                item = arrived.get()
                if isinstance(item, Exception):
                    raise item
                if (following := next(later, None)) is None:
                    expected -= 1
                else:
                    jobs.put(following)
                yield item
        finally:
            # If the caller stops early, open requests finish and no more are sent.
            with suppress(Empty):
                while True:
                    jobs.get_nowait()
            for _ in range(workers):
                jobs.put(None)

    def _work(
        self, jobs: _Jobs, spec: GenerationSpec, put: Callable[[_Arrival], None], pool: list[HttpConnection]
    ) -> None:
        """Process jobs until the end marker; one connection per thread is faster than one shared client."""
        try:
            is_local, ssl = self._target.is_local, self._ssl
            with make_client(self._secret, seconds=self._timeout, is_local=is_local, verify=ssl) as client:
                connection = HttpConnection(client, seconds=self._timeout)
                pool.append(connection)
                while (job := jobs.get()) is not None:
                    place, request, sample = job
                    put((place, self._complete(connection, request, sample, spec)))
        except Exception as error:
            # A thread must not die silently: the caller would wait for ever.
            put(error)

    def _complete(
        self, connection: HttpConnection, request: Request, sample: int, spec: GenerationSpec
    ) -> Completion:
        seed = derive_seed(spec.seed, "endpoint", request.id, sample) % _SEEDS
        body = request_body(self._target, request.text, spec, seed=seed)
        # Tokens have about four bytes; three leaves a margin for other languages.
        reserved = len(body) // 3 + spec.max_new_tokens
        if not self._budget.reserve(reserved):
            return Completion(request.id, sample, None, None, failure="token_cap")
        try:
            answer = self._ask(connection, body, request.text, spec.max_new_tokens)
        except RetryError as error:
            answer = HostResponse(None, None, error.code)
        self._budget.charge(reserved, answer)
        text, finish, failure, prompt_tokens, new_tokens, _ = answer
        if text is not None and spec.stop == "sentence" and (end := first_sentence_end(text)) is not None:
            text, finish = text[:end], "sentence"
        return Completion(request.id, sample, text, finish, prompt_tokens, new_tokens, failure)

    def _ask(self, connection: HttpConnection, body: bytes, prompt: str, tokens: int) -> HostResponse:
        """The response, after as many attempts as are needed and allowed."""
        most = _FRAME + _TOKEN * tokens + _ESCAPED * len(body)
        for attempt in stamina.retry_context(
            on=retry_pause,
            attempts=ATTEMPTS,
            timeout=None,
            wait_initial=FIRST_WAIT,
            wait_max=LONGEST_WAIT,
            wait_jitter=FIRST_WAIT,
        ):
            with attempt:
                return self._post(connection, body, prompt, most)
        raise AssertionError("stamina returns a response or raises")

    def _post(self, connection: HttpConnection, body: bytes, prompt: str, most: int) -> HostResponse:
        """The response to one attempt; raises `RetryError` if another attempt is worthwhile.

        ``most`` is its maximum size in bytes: the largest response to this request.
        """
        try:
            response = connection.post(self._target.url, body, most=most)
        except CompressedResponseError as error:
            how = sanitize_message(str(error), secret=self._secret)
            self._log_once(
                "packed", f"{self._target.url} compressed its response as {how}, which was not requested"
            )
            return HostResponse(None, None, "bad_answer")
        except httpx.TimeoutException:
            raise RetryError("timeout") from None
        except httpx.TransportError as error:
            if self._has_answered or not isinstance(error, httpx.ConnectError):
                raise RetryError("connection") from None
            raise ModelError(
                f"{self._target.url} cannot be reached: {error}",
                expected="an OpenAI-compatible host that is running",
                fix="start the server, or check host and port",
            ) from error
        status, headers, content = response
        if content is None:
            return HostResponse(None, None, "too_large")
        if status == 429 or status >= 500:
            raise RetryError(f"http_{status}", wait=parse_retry_after(headers.get("Retry-After", "")))
        if status != 200:
            return self._handle_refusal(status, content)
        self._has_answered = True
        answer = read_answer(self._target, content, prompt=prompt, secret=self._secret)
        self._served_by.update(answer.served_by)
        return answer

    def _handle_refusal(self, status: int, content: bytes) -> HostResponse:
        """The failure for a rejected request; raises an error if every request would be rejected."""
        code, message = error_message(content, secret=self._secret)
        named = next((field for field in OPTIONAL if field in message), None)
        if not self._has_answered and (status in _FATAL or named):
            raise ModelError(
                f"{self._target.url} answered {status}: {message or 'no reason given'}",
                expected="an OpenAI-compatible host that knows the model and takes the key",
                fix=_advice(status, named, chat=self._target.chat, key_env=self._key_env),
            )
        answer = f"{status} {code}".strip()
        self._log_once(answer, f"{self._target.url} answered {answer}: {message}")
        return HostResponse(None, None, "content_filter" if "content_filter" in code else f"http_{status}")

    def _log_once(self, kind: str, message: str) -> None:
        """Log the first message of each kind: a failure code alone is not informative."""
        with self._lock:
            is_new = kind not in self._logged_kinds
            self._logged_kinds.add(kind)
        if is_new:
            _log.warning("%s", message)


def _list_jobs(shards: Iterable[Sequence[Request]], sizes: dict[int, int]) -> Iterator[_Job]:
    """The jobs of the shards, recording how many texts each shard will have."""
    for place, requests in enumerate(shards):
        sizes[place] = sum(len(request.samples) for request in requests)
        yield from ((place, request, sample) for request in requests for sample in request.samples)


def _advice(status: int, field: str | None, *, chat: bool, key_env: str) -> str:
    if field is not None:
        neutral = "top_k to 0" if field == "top_k" else "repetition_penalty to 1"
        return f"set {neutral}: the host does not support it"
    if status == 401:
        return f"set a valid key in the environment variable {key_env}"
    if status < 400:
        return "use the URL that it redirects to, if you trust it; keys are never sent on a redirect"
    other = "plain completions (chat=false)" if chat else "chat messages (chat=true)"
    return f"check the URL and the model's name, or use {other}"
