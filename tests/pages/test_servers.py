"""Who may do what on a server: sign-in, uploads, host names; and the proxy of deploy/ before one server and two."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlencode, urlsplit

import psutil
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from capbias_core.workspace.store import Workspace
from tests.app import PAGES
from tests.browser import ROOT, WINDOW, free_port, open_page, server, settled
from tests.pages.synthetic import fill, score
from tests.runs.test_engine import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

expect.set_options(timeout=30_000)
CLIENT, PEOPLE, NAME = "capbias", ("anna", "ben"), "capbias.test"
PATHS = [("" if title == "Answer" else title) for title in PAGES]


class Provider(BaseHTTPRequestHandler):
    """An OpenID Connect provider that asks for a name and believes it."""

    key = RSAKey.generate_key(2048, {"kid": "1"}, private=True)

    def do_GET(self) -> None:
        address = f"http://{self.headers['Host']}"
        asked = parse_qs(urlsplit(self.path).query)
        pages = {
            "/.well-known/openid-configuration": {
                "issuer": address,
                "authorization_endpoint": f"{address}/authorize",
                "token_endpoint": f"{address}/token",
                "jwks_uri": f"{address}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
            },
            "/keys": {"keys": [self.key.as_dict(private=False)]},
        }
        if (path := urlsplit(self.path).path) == "/authorize":
            back, nonce, state = (asked.get(key, [""])[0] for key in ("redirect_uri", "nonce", "state"))
            queries = {name: urlencode({"code": f"{name} {nonce}", "state": state}) for name in PEOPLE}
            links = "".join(f'<a href="{back}?{query}">{name}</a> ' for name, query in queries.items())
            self._answer(links.encode(), "text/html")
        else:
            self._answer(json.dumps(pages.get(path, {})).encode(), "application/json")

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        name, _, nonce = sent["code"][0].partition(" ")
        now, address = int(time.time()), f"http://{self.headers['Host']}"
        claims = {"iss": address, "sub": name, "aud": CLIENT, "iat": now, "exp": now + 600, "email": f"{name}@lab.test"}
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims | ({"nonce": nonce} if nonce else {}), self.key)
        answer = {"access_token": "none", "token_type": "Bearer", "expires_in": 600, "id_token": token}
        self._answer(json.dumps(answer).encode(), "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of the identity provider."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()


def write_secrets(provider: str, folder: Path, seen_as: str) -> None:
    """Makes a server that is started in this folder ask people to sign in. seen_as: the address that people open."""
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "secrets.toml").write_text(
        f"""[auth]
redirect_uri = "{seen_as}/oauth2callback"
cookie_secret = "{uuid.uuid4().hex}"
client_id = "{CLIENT}"
client_secret = "secret"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""
    )


def sign_in(window, name: str) -> None:
    window.get_by_role("button", name="Sign in").click()
    window.get_by_role("link", name=name).click()
    window.get_by_role("button", name="Sign out").wait_for()
    settled(window)


@contextmanager
def session(address: str, host: str = "", path: str = "", query: str = ""):
    """A client that is no browser, while it has a page open: its session's ID, and the elements of the page."""
    place = urlsplit(address)
    raw, name = socket.create_connection((place.hostname, place.port)), host or place.netloc
    stream = connect(
        f"ws://{name}/_stcore/stream", sock=raw, origin=f"http://{name}", subprotocols=["streamlit"], max_size=None
    )
    with stream as opened:
        message = BackMsg()
        message.rerun_script.page_name, message.rerun_script.query_string = path, query
        opened.send(message.SerializeToString())
        session_id, elements = "", []
        for data in opened:
            read = ForwardMsg()
            read.ParseFromString(data)
            session_id = read.new_session.initialize.session_id or session_id
            elements += [read.delta.new_element] if read.delta.HasField("new_element") else []
            if read.HasField("script_finished"):
                break
        yield session_id, elements


def upload(address: str, session_id: str, method: str = "PUT", path: str = "_stcore/upload_file") -> int:
    """The status of an upload, with the token against other sites that everybody gets."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", "/_stcore/health")
    answer = connection.getresponse()
    answer.read()
    token = (answer.headers.get("Set-Cookie") or "").partition("_streamlit_xsrf=")[2].partition(";")[0]
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\nimage_id\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "X-Xsrftoken": token}
    headers |= {"Cookie": f"_streamlit_xsrf={token}"}
    connection.request(method, f"/{path}/{session_id}/{uuid.uuid4()}", body, headers)
    return connection.getresponse().status


@contextmanager
def nginx(folder: Path, port: int, *servers: int) -> Iterator[None]:
    """The shipped configuration with another name, certificate, ports and servers.

    The file `asked` of the folder has a line per request: the port of the server, the visitor, the path.
    """
    folder.mkdir(exist_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
        + ["-keyout", folder / "key", "-out", folder / "pem"],
        check=True,
        capture_output=True,
    )
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    for given, here in {
        "capbias.example.org": NAME,
        "/etc/ssl/capbias.pem": str(folder / "pem"),
        "/etc/ssl/capbias.key": str(folder / "key"),
        "listen 80": f"listen {free_port()}",
        "listen 443": f"listen {port}",
        "server 127.0.0.1:8501;": " ".join(f"server 127.0.0.1:{own};" for own in servers),
    }.items():
        assert given in shipped
        shipped = shipped.replace(given, here)
    log = f"log_format asked '$upstream_addr $cookie_capbias_visitor $uri'; access_log {folder}/asked asked;"
    whole = f"pid {folder}/pid; error_log {folder}/log; daemon off;\nevents {{}}\nhttp {{ {log}\n{shipped}\n}}"
    (folder / "conf").write_text(whole)
    running = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "conf"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        yield
    finally:
        running.terminate()
        running.wait(10)


def request(port: int, method: str = "GET", name: str = NAME, length: int = 0) -> http.client.HTTPResponse:
    """The answer to a request for this host name."""
    connection = http.client.HTTPSConnection(name, port)
    connection.sock = ssl._create_unverified_context().wrap_socket(
        socket.create_connection(("127.0.0.1", port), 10), server_hostname=name
    )
    connection.request(method, "/_stcore/upload_file/a/b" if length else "/", headers={"Content-Length": str(length)})
    return connection.getresponse()


@pytest.fixture(scope="module")
def deployed(provider, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """Two servers that ask people to sign in and share a folder, behind the proxy of deploy/ if nginx is installed."""
    folder, port = tmp_path_factory.mktemp("deployed"), free_port()
    address = f"{'https' if shutil.which('nginx') else 'http'}://{NAME}:{port}"
    write_secrets(provider, folder, address)
    fill(Workspace(folder / "home"), "private")
    lab = Workspace(folder / "the lab")
    fill(lab)
    score(lab, metrics=("lic",), words=False)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPBIAS_SHARED", str(lab.folder))
        proxied = address.startswith("https")
        ports = [free_port(), free_port()] if proxied else [port]
        servers = [stack.enter_context(server(folder / "home", port=own, folder=folder)) for own in ports]
        if proxied:
            stack.enter_context(nginx(folder, port, *ports))
        yield SimpleNamespace(address=address, port=port, folder=folder, home=folder / "home", servers=servers)


def test_each_person_has_a_workspace_and_all_read_one(chrome, deployed):
    """Behind the proxy, whose headers forbid nothing that pages do, and which keeps a visitor with one server."""
    home, address, lines = deployed.home, deployed.address, []
    for path in PATHS:  # nobody is signed in
        with session(deployed.servers[0][0], "", path, "collection=private&captioner=first") as (_, elements):
            assert "Sign in" in [element.button.label for element in elements], path
            assert not any(element.HasField("selectbox") for element in elements)
            assert "private" not in str(elements).replace("collection=private", ""), "but for what the link says"
    assert not (home / "people").exists(), "nobody has a workspace"
    with ExitStack() as stack:

        def visitor(path: str):
            context = chrome.new_context(**WINDOW, ignore_https_errors=True)
            stack.callback(context.close)
            window = context.new_page()
            window.on("console", lambda line: lines.append(line.text) if line.type == "error" else None)
            open_page(window, f"{address}/{path}")
            return window

        anna, ben = visitor("Data?tab=Files"), visitor("")
        assert ben.get_by_role("combobox").count() == 0
        sign_in(anna, "anna"), sign_in(ben, "ben")
        assert re.search(r"/Data\?.*workspace=anna%40lab.test", anna.url), "the link that was opened first"
        folders = {folder.name for folder in (home / "people").iterdir()}
        assert len(folders) == 2 and not folders & set(PEOPLE)
        before = {path: path.read_bytes() for path in (deployed.folder / "the lab" / "data").iterdir()}
        open_page(ben, f"{address}/Data?workspace=the+lab+(shared)&collection=c")
        expect(ben.get_by_role("combobox", name="Workspace")).to_have_value("the lab (shared)")
        expect(ben.get_by_text("you can read it, but not change it")).to_be_visible()
        ben.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(position={"x": 15, "y": 52})
        expect(ben.get_by_text(re.compile("content hash [0-9a-f]"))).to_be_visible()
        assert ben.get_by_role("button", name="Delete").count() == ben.get_by_test_id("stException").count() == 0
        assert ben.get_by_test_id("stFileUploader").count() == 0
        charts = {"": ".st-key-table_chart button", "Scores?tab=Encoder+sensitivity": ".js-plotly-plot"}
        for path, drawn in {**charts, "Images": "h1"}.items():
            open_page(ben, f"{address}/{path}{'&' if '?' in path else '?'}workspace=the+lab+(shared)&collection=c")
            ben.locator(drawn).first.wait_for()
            assert ben.get_by_test_id("stException").count() == 0, path
        open_page(ben, f"{address}/Scores?workspace=the+lab+(shared)&collection=c&metrics_=error")
        ben.get_by_text("Measure more", exact=True).click()
        ben.get_by_role("button", name="Run", exact=True).click()
        expect(ben.get_by_role("alert").filter(has_text="can only be read")).to_be_visible()
        assert before == {path: path.read_bytes() for path in (deployed.folder / "the lab" / "data").iterdir()}
        open_page(ben, f"{address}/Data?workspace=anna%40lab.test")
        expect(ben.get_by_text("'anna@lab.test'")).to_be_visible()
        visitors = [own["value"] for own in ben.context.cookies() if own["name"] == "capbias_visitor"]
        ben.get_by_role("button", name="Sign out").click()
        expect(ben.get_by_role("button", name="Sign in")).to_be_visible()
    assert not [line for line in lines if "Content Security Policy" in line], lines
    if address.startswith("https"):
        asked = [line.split(" ") for line in (deployed.folder / "asked").read_text().splitlines()]
        assert len({server for server, who, _ in asked if [who] == visitors and server != "-"}) == 1


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_the_proxy_sends_headers_limits_uploads_and_knows_one_name(deployed):
    answer = request(deployed.port)
    rules = " ".join(answer.headers.get_all("Content-Security-Policy"))  # the server's own too
    assert answer.status == 200 and "default-src 'self'" in rules and "frame-ancestors 'none'" in rules
    assert "http" not in rules and answer.headers["Strict-Transport-Security"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["X-Frame-Options"] == "DENY"
    assert request(deployed.port, "PUT", length=201 * 1024 * 1024).status == 413
    with pytest.raises(ssl.SSLError):
        request(deployed.port, name="elsewhere.test")


def test_only_people_who_signed_in_upload_and_a_server_opens_under_its_names_only(deployed):
    """Also to a session that is open, and whatever the address of the upload looks like. A signal ends the server."""
    address, process = deployed.servers[-1]
    port = urlsplit(address).port
    for host in (f"localhost:{port}", f"[::1]:{port}", urlsplit(deployed.address).hostname):
        with session(address, host) as (own, _):
            assert own, host
    for host in (f"evil.test:{port}", f"127.0.0.1.evil.test:{port}", f"localhost.evil.test:{port}"):
        with pytest.raises(InvalidStatus), session(address, host):
            pass
    with session(address) as (own, _):
        for more in ({}, {"method": "DELETE"}, {"path": "/_stcore/upload_file"}):
            assert upload(address, own, **more) == 403
        assert upload(address, f"{own}/{own}") == upload(address, "nobody") == 403
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM), "also with a page open"
    assert not psutil.wait_procs(below, 30)[1]
    with pytest.raises(OSError), socket.create_connection((urlsplit(address).hostname, port)):
        pass
