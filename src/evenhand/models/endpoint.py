"""Hosted models behind an OpenAI-compatible interface: vLLM, llama.cpp, and services."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import httpx
import stamina

from evenhand.core import http
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Completion, Execution, Finish, GenerationSpec, ModelRef, Request
from evenhand.core.seeds import derive_seed
from evenhand.generation.spec_checks import check_control_code, refuse_iterations
from evenhand.models import INSTRUCTION
from evenhand.text.sentences import first_sentence_end

ATTEMPTS: Final = 6
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
"""Seconds; a host that asks for a longer pause is not waited for."""
OPTIONAL: Final = ("top_k", "repetition_penalty", "repeat_penalty")
"""Fields beyond OpenAI's own, which vLLM and llama.cpp accept and other hosts may reject."""

_ACCEPTED: Final = "endpoint:URL#MODEL, such as endpoint:http://localhost:8000/v1#my-model"
_CHAT: Final = "/chat/completions"
_PLAIN: Final = "/completions"
_FINISHES: Final[Mapping[object, Finish]] = {"stop": "stop", "length": "length"}
_LARGEST_COUNT: Final = 2**63 - 1
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
_Pool = list[http.HttpConnection]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndpointTarget:
    """One model of one host."""

    url: str
    """The full URL of requests, with ``/completions``."""
    model: str
    chat: bool
    is_local: bool

    @property
    def name(self) -> str:
        """The name without the part that distinguishes the two interfaces."""
        return f"{self.url.removesuffix(_CHAT if self.chat else _PLAIN)}#{self.model}"


class HostResponse(NamedTuple):
    """A host's response to one request: a text, or why there is none."""

    text: str | None
    finish: Finish | None
    failure: str | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    served_by: Mapping[str, str] = {}
    """The model's full name and fingerprint, if the host reports them."""


def parse_target(name: str, *, chat: bool | None) -> EndpointTarget:
    """The target of ``URL#MODEL``; if ``chat`` is None, the URL decides, by default plain completions."""
    address, _, model = name.partition("#")
    parts = _split(address)
    # Without a scheme, user info is not where URL parsers expect it: u:PW@h reads as the scheme u.
    if "@" in (parts.netloc or address):
        raise InputError(
            f"the endpoint of model {model!r} holds a user name or a password",
            expected=f"{_ACCEPTED}; keys by environment variable only",
            fix="set the key in EVENHAND_API_KEY and remove it from the URL",
        )
    if parts.query or "?" in address:
        raise InputError(
            f"the endpoint of model {model!r} has a query after '?'",
            expected=f"{_ACCEPTED}, without a query",
            fix="remove the part after '?' from the URL",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not model:
        problem = f"{name!r} is not an endpoint" if address else "the endpoint has no URL"
        raise InputError(problem, expected=_ACCEPTED, fix="write the URL, a # and the model")
    path = parts.path.rstrip("/")
    says_chat = True if path.endswith(_CHAT) else False if path.endswith(_PLAIN) else None
    if chat is not None and says_chat is not None and chat != says_chat:
        raise InputError(
            f"the URL ends in {_CHAT if says_chat else _PLAIN} and chat is {chat}",
            expected="one of the two",
            fix="remove the option chat",
        )
    as_chat = bool(says_chat if chat is None else chat)
    base = path.removesuffix(_CHAT if says_chat else _PLAIN) if says_chat is not None else path or "/v1"
    url = f"{parts.scheme}://{parts.netloc}{base}{_CHAT if as_chat else _PLAIN}"
    return EndpointTarget(url, model, as_chat, parts.hostname in http.LOOPBACK)


def _split(address: str) -> SplitResult:
    """The parts of a URL. An invalid URL is not shown: a password with a # in it would end up here."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise InputError(
            "the endpoint has an invalid host or port",
            expected=f"{_ACCEPTED}; keys by environment variable only",
            fix="check the part between // and the next /",
        ) from None
    return parts


def request_body(target: EndpointTarget, prompt: str, spec: GenerationSpec, *, seed: int) -> bytes:
    """The request body. Fields with the neutral value in the spec are not sent."""
    body: dict[str, Json] = {
        "model": target.model,
        "max_tokens": spec.max_new_tokens,
        "temperature": spec.temperature,
        "top_p": spec.top_p,
        "seed": seed,
    }
    if spec.top_k:
        body["top_k"] = spec.top_k
    if spec.repetition_penalty != 1:
        body |= dict.fromkeys(("repetition_penalty", "repeat_penalty"), spec.repetition_penalty)
    if target.chat:
        body["messages"] = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    return json.dumps(body).encode("utf-8")


def read_answer(target: EndpointTarget, content: bytes, *, prompt: str, secret: str = "") -> HostResponse:
    """Parse a successful response; an invalid body becomes the failure ``bad_answer``.

    Half a character (a lone surrogate, which JSON allows and no table accepts) becomes U+FFFD, and is dropped
    at the end, as local models drop it there. ``secret`` is removed from the text before any cut, and from
    the host's report on itself.
    """
    try:
        body = json.loads(content)
        choice = body["choices"][0]
        message = choice["message"] if target.chat else choice
        refusal = message.get("refusal")
        text = message.get("content" if target.chat else "text")
        finish = choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return HostResponse(None, None, "bad_answer")
    tokens = _count(body, "prompt_tokens"), _count(body, "completion_tokens")
    if finish == "content_filter":
        return HostResponse(None, None, "content_filter", *tokens)
    if refusal:
        return HostResponse(None, None, "refused", *tokens)
    if not isinstance(text, str):
        return HostResponse(None, None, "bad_answer", *tokens)
    if target.chat:
        text = text.removeprefix(prompt)
    finish_code = _FINISHES.get(finish, "stop") if isinstance(finish, str) else "stop"
    text = http.redact_key(_whole(text), secret=secret)
    names = {"model": body.get("model"), "fingerprint": body.get("system_fingerprint")}
    served_by = {
        key: http.sanitize_message(name, secret=secret)
        for key, name in names.items()
        if isinstance(name, str)
    }
    return HostResponse(text, finish_code, None, *tokens, served_by=served_by)


def error_message(content: bytes, *, secret: str = "") -> tuple[str, str]:
    """The code and the message of an error response, as far as it has them, sanitized."""
    try:
        error = json.loads(content)["error"]
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        code, message = "", content.decode("utf-8", "replace")
    return http.sanitize_message(code, secret=secret), http.sanitize_message(message, secret=secret)


def _count(body: Mapping[str, object], name: str) -> int | None:
    """A token count that a table can hold; JSON's true is an int in Python, but not a count."""
    usage = body.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count <= _LARGEST_COUNT else None


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip("\ufffd")
    return text


@dataclass(eq=False)
class RetryError(Exception):
    """A failure that may be temporary."""

    code: str
    wait: float | None = None


def close_overdue(
    connections: Sequence[http.HttpConnection], workers: Sequence[threading.Thread], *, seconds: float
) -> None:
    """Close overdue connections of all workers while any is busy; one thread instead of a timer per request.

    A response may therefore take a tenth longer than ``seconds``, or one second longer.
    """
    while any(worker.is_alive() for worker in workers):
        time.sleep(min(1.0, seconds / 10))
        for connection in tuple(connections):
            connection.close_if_overdue()


@dataclass(slots=True)
class TokenBudget:
    """Tokens spent, including those reserved by open requests, against a cap."""

    cap: int | None
    spent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, tokens: int) -> bool:
        """Whether that many more tokens may be spent; if so, they are counted at once."""
        with self.lock:
            if self.cap is not None and self.spent + tokens > self.cap:
                return False
            self.spent += tokens
            return True

    def charge(self, reserved: int, answer: HostResponse) -> None:
        """Replace the reservation by the usage that the host reports; a failure uses nothing."""
        counts = [count for count in (answer.prompt_tokens, answer.new_tokens) if count is not None]
        if counts or answer.text is None:
            with self.lock:
                self.spent += sum(counts) - reserved


def retry_pause(error: Exception) -> bool | float:
    """Whether an error is worth a retry, or the pause in seconds that the host asked for."""
    if not isinstance(error, RetryError) or error.wait is None:
        return isinstance(error, RetryError)
    return error.wait if error.wait <= LONGEST_WAIT else False


def parse_retry_after(asked: str) -> float | None:
    """The pause that a host asks for, in seconds; None if the header is missing or invalid."""
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(0.0, wait)


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
        self._secret = http.read_api_key(self._key_env)
        if self._secret and not (self._target.is_local or self._target.url.startswith("https:")):
            self._log_once("key", http.describe_plain_http(self._key_env, self._target.url))
        later = _list_jobs(shards, sizes)
        jobs, arrived = _Jobs(), SimpleQueue[_Arrival]()
        # Twice as many jobs as workers are queued, so that no worker waits for the caller.
        first = list(islice(later, 2 * self._concurrency))
        for job in first:
            jobs.put(job)
        expected, workers = len(first), min(self._concurrency, len(first))
        connections: _Pool = []
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

    def _work(self, jobs: _Jobs, spec: GenerationSpec, put: Callable[[_Arrival], None], pool: _Pool) -> None:
        """Process jobs until the end marker; one connection per thread is faster than one shared client."""
        try:
            is_local, ssl = self._target.is_local, self._ssl
            with http.make_client(
                self._secret, seconds=self._timeout, is_local=is_local, verify=ssl
            ) as client:
                connection = http.HttpConnection(client, seconds=self._timeout)
                pool.append(connection)
                while (job := jobs.get()) is not None:
                    place, request, sample = job
                    put((place, self._complete(connection, request, sample, spec)))
        except Exception as error:
            # A thread must not die silently: the caller would wait for ever.
            put(error)

    def _complete(
        self, connection: http.HttpConnection, request: Request, sample: int, spec: GenerationSpec
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

    def _ask(self, connection: http.HttpConnection, body: bytes, prompt: str, tokens: int) -> HostResponse:
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

    def _post(self, connection: http.HttpConnection, body: bytes, prompt: str, most: int) -> HostResponse:
        """The response to one attempt; raises `RetryError` if another attempt is worthwhile.

        ``most`` is its maximum size in bytes: the largest response to this request.
        """
        try:
            response = connection.post(self._target.url, body, most=most)
        except http.CompressedResponseError as error:
            how = http.sanitize_message(str(error), secret=self._secret)
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
