"""``invite_people``, ``serve_study``, ``forget_person``: a study and the people who answer it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack
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
    from evenhand.annotate.database import Database
    from evenhand.annotate.participants import Invitation

HOST: Final = str(fields_of(ServeOptions)["host"].default)
PORT: Final = fields_of(ServeOptions)["port"].default
_MOST_HEADERS: Final = 16 << 10
"""Bytes of one request's headers; a browser sends about one thousand."""
_IDLE: Final = 5
"""Seconds a connection stays open between two requests."""


class StudyState(NamedTuple):
    """How far a study is."""

    progress: StudyProgress
    links: int
    """People who have a link."""


@checks_options
def invite_people(study: Path | str, people: int = 1, **options: Unpack[InviteOptions]) -> list[Invitation]:
    """New private links, or with ``again`` a new link for somebody who lost theirs.

    The tokens are stored nowhere: a link that is not copied now is lost. ``base`` is the address people use,
    where that is not this machine's own.
    """
    address = options["base"] or site(HOST, PORT)
    format_link(address, "")
    again = options["again"]
    with _open_database(study, options) as db:
        from evenhand.annotate.participants import create_invitations, renew_link

        invitations = [renew_link(db, again)] if again else create_invitations(db, people)
    return [one._replace(link=format_link(address, one.token)) for one in invitations]


@checks_options
def forget_person(study: Path | str, annotator: str, **options: Unpack[ForgetOptions]) -> str:
    """The random name somebody's answers now have; their link and id are gone."""
    with _open_database(study, options) as db:
        from evenhand.annotate.participants import erase_person

        return erase_person(db, annotator, answers_too=options["answers_too"])


@checks_options
def read_study_state(study: Path | str, **options: Unpack[StudyDatabase]) -> StudyState:
    """How far a study is, and how many people have links."""
    with _open_database(study, options) as db:
        from evenhand.annotate.annotation_service import AnnotationService
        from evenhand.annotate.participants import read_links

        return StudyState(AnnotationService(db).count_progress(), len(read_links(db)))


@checks_options
def serve_study(study: Path | str, **options: Unpack[ServeOptions]) -> None:
    """Serve a study until it is stopped (Ctrl-C); ``base`` is the address people use, if another.

    ``trusted_proxy`` names proxies by address or network (``10.0.0.0/8``): behind these a visitor's address
    is the last one in ``X-Forwarded-For`` that is not itself a trusted proxy's. Other headers are ignored.
    """
    proxies = proxy_networks(options["trusted_proxy"])
    host = options["host"]
    with _open_socket(host, options["port"]) as listener, _open_database(study, options) as db:
        from evenhand.annotate.web_app import create_app

        build_server(create_app(db, host=host, base=options["base"]), proxies).run(sockets=[listener])


def build_server(app: Starlette, proxies: Sequence[str] = ()) -> Server:
    """The server of an app, with its limits; slow requests are left to a proxy."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        # It would contain the addresses of links.
        access_log=False,
        server_header=False,
        # Both are set: by default uvicorn trusts whoever connects from this machine.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        # Not "auto": another parser, if installed, has no limit on headers.
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
    """The private link of a token; an error for a base that is not a whole site: pages are at its root."""
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
            fix="give the whole address",
        )
    return f"{base.rstrip('/')}/join/{token}"


def proxy_networks(trusted: str | Sequence[str]) -> list[str]:
    """The networks of trusted proxies; an error for anything else, and for a network of everybody."""
    networks = []
    for address in [trusted] if isinstance(trusted, str) else trusted:
        try:
            network = ip_network(address, strict=False)
        except ValueError:
            network = None
        # If everybody were a proxy, everybody could claim any address.
        if network is None or network.prefixlen == 0:
            raise InputError(
                f"--trusted-proxy {address!r}",
                expected="an address or a network: 127.0.0.1, 10.0.0.0/8, fd00::/8",
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
            f"nothing can listen at {host}, port {port}: {error.strerror}",
            expected="an address of this machine, and a port that is free",
            fix="choose another with --port, or stop what uses it",
        ) from error


def _open_database(study: Path | str, options: StudyDatabase) -> Database:
    """The answers of a study; an error that names the extra where any of its libraries is missing."""
    for library in ("sqlalchemy", "starlette", "uvicorn"):
        require_library(library, "a study that people answer")
    from evenhand.annotate.database import Database

    return Database(read_study(study), options["database"])
