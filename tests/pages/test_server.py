"""What the web server takes from whom: by hand, as somebody who is no browser."""

from __future__ import annotations

import http.client
import signal
import uuid
from contextlib import contextmanager
from socket import create_connection
from urllib.parse import urlsplit

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.browser import app, free_port, server
from tests.pages.test_sign_in import asking, write_secrets

pytestmark = pytest.mark.long


@contextmanager
def session(address: str, host: str = ""):
    """The id of a session of somebody who opened the front page, while the page is open."""
    place = urlsplit(address)
    raw, name = create_connection((place.hostname, place.port)), host or place.netloc
    with connect(
        f"ws://{name}/_stcore/stream", sock=raw, origin=f"http://{name}", subprotocols=["streamlit"], max_size=None
    ) as socket:
        message = BackMsg()
        message.rerun_script.query_string = ""
        socket.send(message.SerializeToString())
        found = ""
        for data in socket:
            read = ForwardMsg()
            read.ParseFromString(data)
            found = read.new_session.initialize.session_id or found
            if read.HasField("script_finished"):
                break
        yield found


def upload(address: str, session_id: str, method: str = "PUT", path: str = "_stcore/upload_file") -> tuple[int, str]:
    """Status and text of the answer to an upload, with the token against other sites that everybody gets."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", "/_stcore/health")
    answer = connection.getresponse()
    answer.read()
    token = (answer.headers.get("Set-Cookie") or "").partition("_streamlit_xsrf=")[2].partition(";")[0]
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\nimage_id\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "X-Xsrftoken": token}
    headers |= {"Cookie": f"_streamlit_xsrf={token}"}
    connection.request(method, f"/{path}/{session_id}/{uuid.uuid4()}", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_who_did_not_sign_in_uploads_nothing(tmp_path):
    """Also to a session that is open, and whatever the address of the upload looks like."""
    (tmp_path / "asking").mkdir()
    started = asking("http://127.0.0.1:9", tmp_path / "home", tmp_path / "asking", free_port())
    with started as address, session(address) as own:
        refused = 403, "Sign in first."
        assert own and upload(address, own) == refused and upload(address, own, "DELETE") == refused
        assert upload(address, f"{own}/{own}") == refused and upload(address, "nobody") == refused
        assert upload(address, own, path="/_stcore/upload_file") == refused
    with server(tmp_path / "open") as (address, _), session(address) as own:
        assert upload(address, own)[0] == 204 and upload(address, "nobody")[0] == 400


def test_another_name_opens_nothing(tmp_path):
    with app(tmp_path / "home", tmp_path) as (port, process):
        address = f"http://127.0.0.1:{port}"
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
            with session(address, host) as own:
                assert own, host
        for host in (f"evil.test:{port}", f"127.0.0.1.evil.test:{port}", f"localhost.evil.test:{port}"):
            with pytest.raises(InvalidStatus), session(address, host):
                pass
        with session(address):
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM), "a signal reaches the server, also with a page open"


def test_the_name_by_which_people_sign_in_opens_it(tmp_path):
    write_secrets("http://127.0.0.1:9", tmp_path, "https://capbias.test")
    with app(tmp_path / "home", tmp_path) as (port, _), session(f"http://127.0.0.1:{port}", "capbias.test") as own:
        assert own
