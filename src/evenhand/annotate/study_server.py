"""``invite_people``, ``serve_study``, ``forget_person``: run a study and manage its participants."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack
from urllib.parse import urlsplit

from evenhand.annotate.options import ForgetOptions, InviteOptions, ServeOptions, StudyDatabase
from evenhand.annotate.study import read_study
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of
from evenhand.core.registry import require_library

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from uvicorn import Server

    from evenhand.annotate.annotation_service import StudyProgress
    from evenhand.annotate.database import Database, Person

HOST: Final = str(fields_of(ServeOptions)["host"].default)
PORT: Final = fields_of(ServeOptions)["port"].default
_MOST_HEADERS: Final = 16 << 10
"""Maximum bytes of a request's headers; a browser sends about one thousand."""
_IDLE: Final = 5
"""Seconds a connection stays open between two requests."""


@checks_options
def invite_people(study: Path | str, people: int = 1, **options: Unpack[InviteOptions]) -> list[Person]:
    """Create private links, or with ``again`` a new link for a person who lost theirs.

    Tokens are not stored: copy a link now or it is lost. ``base`` is the public address, if it is not that of
    this machine.
    """
    address = options["base"] or site(HOST, PORT)
    format_link(address, "")
    again = options["again"]
    with _open_database(study, options) as db:
        invitations = [db.renew_link(again)] if again else db.create_invitations(people)
    return [one._replace(link=format_link(address, one.token)) for one in invitations]


@checks_options
def forget_person(study: Path | str, annotator: str, **options: Unpack[ForgetOptions]) -> str:
    """Erase a person's link and id; return the new random id of their answers."""
    with _open_database(study, options) as db:
        return db.erase_person(annotator, answers_too=options["answers_too"])


@checks_options
def read_study_state(study: Path | str, **options: Unpack[StudyDatabase]) -> StudyProgress:
    """Read the progress of a study and the number of people with links."""
    with _open_database(study, options) as db:
        from evenhand.annotate.annotation_service import AnnotationService

        return AnnotationService(db).count_progress()


@checks_options
def serve_study(study: Path | str, **options: Unpack[ServeOptions]) -> None:
    """Serve a study until stopped (Ctrl-C); ``base`` is the public address, if different.

    ``trusted_proxy`` lists proxies by address or network (``10.0.0.0/8``). Behind them, a visitor's address
    is the last one in ``X-Forwarded-For`` that is not a trusted proxy. Other headers are ignored.
    """
    proxies = proxy_networks(options["trusted_proxy"])
    host = options["host"]
    with _open_socket(host, options["port"]) as listener, _open_database(study, options) as db:
        from evenhand.annotate.web_app import create_app

        build_server(create_app(db, host=host, base=options["base"]), proxies).run(sockets=[listener])


def build_server(app: Starlette, proxies: Sequence[str] = ()) -> Server:
    """Build the server of an app with its limits; slow requests are left to a proxy."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        # The access log would contain private links.
        access_log=False,
        server_header=False,
        # Both are set: by default uvicorn trusts all clients on this machine.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        # Not "auto": the other parser, if installed, does not limit headers.
        http="h11",
        h11_max_incomplete_event_size=_MOST_HEADERS,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def site(host: str, port: object) -> str:
    """The address of a server on this machine."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def format_link(base: str, token: str) -> str:
    """The private link of a token; an error if the base has a path: pages are at the root of a site."""
    try:
        parts = urlsplit(base)
        rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        is_site = parts.scheme in ("http", "https") and parts.hostname and not rest
        _ = parts.port
    except ValueError:
        is_site = False
    if not is_site:
        raise InputError(
            f"--base {base!r}",
            expected="http://HOST:PORT or https://HOST, without a path",
            fix="give the address without a path",
        )
    return f"{base.rstrip('/')}/join/{token}"


def proxy_networks(trusted: str | Sequence[str]) -> list[str]:
    """The networks of trusted proxies; an error for invalid ones and for a network of all addresses."""
    networks = []
    for address in [trusted] if isinstance(trusted, str) else trusted:
        try:
            network = ip_network(address, strict=False)
        except ValueError:
            network = None
        # If every client were a proxy, every client could claim any address.
        if network is None or network.prefixlen == 0:
            raise InputError(
                f"--trusted-proxy {address!r}",
                expected="an address or network: 127.0.0.1, 10.0.0.0/8, fd00::/8",
                fix="name the proxy in front of the server",
            )
        networks.append(str(network))
    return networks


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror}",
            expected="an address of this machine and a free port",
            fix="choose another port with --port, or stop the program that uses it",
        ) from error


def _open_database(study: Path | str, options: StudyDatabase) -> Database:
    """The database of a study; if a library is missing, the error names the extra to install."""
    for library in ("sqlalchemy", "starlette", "uvicorn"):
        require_library(library, "an annotation study")
    from evenhand.annotate.database import Database

    return Database(read_study(study), options["database"])
