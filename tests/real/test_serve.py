"""`trainflow serve` over real HTTP: who gets in, what comes with every answer, and what becomes of the screens."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainflow_tui.collaboration import approvals, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")
pytest.importorskip("aiohttp", reason="the extra `web` is not installed")
from tests.real.served import ROOT, Served, until

TASK = "Adapt the router"
REQUEST = "Restart from step 150"
REASON = "The loss spiked there"
PATHS = ("/", "/ws", "/static/textual.js", "/static/page.css", "/nothing")


def fill(root: Path) -> None:
    """A workspace with a task and a request that waits."""
    agent = Actor(door="cli", uid=os.getuid(), user="operator", agent="adapter-1")
    workspace = Workspace.open(root, create=True)
    task = tasks.create(workspace, title=TASK, actor=agent)
    payload = CommandPayload(argv=["launch", "--resume", "150"], hosts=["dcu-01"])
    wanted = ApprovalRequest(task=task.id, title=REQUEST, payload=payload, kind="resource", why=REASON)
    approvals.request(workspace.ledger, wanted, actor=agent)
    workspace.close()


def request_in(root: Path):
    """The one request, and how far the ledger has come."""
    workspace = Workspace.open(root)
    try:
        (found,) = approvals.listed(workspace.ledger)
        return found, workspace.ledger.version()
    finally:
        workspace.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    root = place / "ws"
    root.mkdir(mode=0o700)
    fill(root)
    return root


@pytest.fixture(scope="module")
def opened(filled):
    """A server with a session, for tests that change nothing about it."""
    with Served(filled, filled.parent / "config") as served:
        yield served.enter()


@pytest.fixture
def root(tmp_path):
    """A workspace of the test's own."""
    found = tmp_path / "ws"
    found.mkdir(mode=0o700)
    fill(found)
    return found


@pytest.fixture
def serve(root, tmp_path):
    """Starts servers on the test's own workspace; all are ended."""
    started = []

    def start(*words, at=root):
        started.append(Served(at, tmp_path / "config", *words))
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


# What is printed


def test_it_prints_one_object_with_the_address(opened):
    assert opened.said == {
        "schema": "serve/1",
        "status": "ok",
        "reasons": [],
        "url": f"http://127.0.0.1:{opened.port}/?token={opened.token}",
        "port": opened.port,
        "pid": opened.process.pid,
        "readonly": True,
    }


def test_for_a_person_it_prints_the_address_and_the_port_forward(command):
    command.run("task", "create", "t")
    verb = [sys.executable, "-m", "trainflow_tui", "--workspace", str(command.root), "serve", "--no-json"]
    running = subprocess.Popen(verb, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    lines = [running.stdout.readline() for _ in range(5)]
    running.send_signal(signal.SIGINT)
    assert running.stdout.read() == ""
    assert running.wait() == 0
    running.stdout.close()
    port = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{43}$", lines[1]).group(1)
    assert f"ssh -L {port}:127.0.0.1:{port} " in lines[3]
    assert "read-only" in lines[4]
    assert "ctrl+c" in lines[4]


def test_without_the_extra_it_names_the_line_that_installs_it(command):
    command.run("task", "create", "t")
    for missing in ("textual_serve", "aiohttp"):
        probe = (
            f"import sys; sys.modules[{missing!r}] = None; from trainflow_tui.cli.main import main; main(sys.argv[1:])"
        )
        words = [sys.executable, "-c", probe, "--workspace", str(command.root), "--json", "serve"]
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
        error = json.loads(done.stdout)["error"]
        assert (done.returncode, error["code"]) == (64, "web-extra-missing"), done.stderr
        assert "pip install 'trainflow-tui[web]'" in error["next_step"]


def test_what_it_cannot_do_is_refused_before_anything_is_served(command, opened):
    assert command.json("serve")[0] == 64
    assert not (command.root / ".trainflow").exists()
    command.run("task", "create", "t")
    for words, code in (
        (("--port", "80"), 64),
        (("--port", "65536"), 64),
        (("--host", "0.0.0.0"), 64),
        (("--readonly", "--read-write"), 64),
        (("--port", str(opened.port)), 30),
    ):
        assert command.json("serve", *words)[0] == code, words


def test_a_workspace_that_is_set_read_only_stays_so(serve, root):
    (root / "trainflow.toml").write_text("readonly = true\n")
    assert serve("--read-write").said["readonly"] is True


# Who gets in


def test_the_address_opens_once_and_the_token_is_not_the_cookie(serve):
    served = serve()
    for wrong in ("", "x", served.token[:-1], served.token + "x", "%ff", "%ED%A0%80"):
        assert served.ask(f"/?token={wrong}")[0].status == 403
    answer, text = served.ask(f"/?token={served.token}")
    assert answer.status == 200
    assert served.token not in text
    name, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert served.token not in name
    for cookie in ("", name):  # nor with the cookie: an address that was used does nothing
        answer, text = served.ask(f"/?token={served.token}", cookie=cookie)
        assert answer.status == 403
        assert text.startswith("This address does not work, or no more: it opens once.")
        assert "Set-Cookie" not in answer.headers
    assert served.ask("/", cookie=name)[0].status == 200


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_given_without_the_cookie(opened, path):
    name, _, value = opened.cookie.partition("=")
    wrong = ("", f"{name}=", f"{name}={value[:-1]}", f"{name}={opened.token}", f"other={value}", f"{name}=\xe9")
    for cookie in wrong:
        answer, text = opened.ask(path, cookie=cookie or "a=b", Origin=f"http://127.0.0.1:{opened.port}")
        assert (answer.status, answer.headers["Content-Type"]) == (403, "text/plain; charset=utf-8")
        assert text == "This browser has not opened the address that `trainflow serve` printed.\n"


def test_the_token_opens_nothing_but_the_front_door(serve):
    served = serve()
    for path in PATHS[1:]:
        assert served.ask(f"{path}?token={served.token}")[0].status == 403
    for method in ("HEAD", "POST", "PUT", "OPTIONS"):
        assert served.ask(f"/?token={served.token}", method=method)[0].status == 403
    assert served.ask(f"/?token={served.token}")[0].status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}"])
def test_a_foreign_host_name_gets_nothing_and_uses_nothing_up(opened, host):
    for path in (*PATHS, "/?token=x"):
        answer, text = opened.ask(path, host=host.format(port=opened.port))
        assert answer.status == 403
        assert text == f"This server answers only to http://127.0.0.1:{opened.port}/.\n"


def test_it_answers_to_localhost_too(opened):
    answer, text = opened.ask("/", host=f"localhost:{opened.port}")
    assert answer.status == 200
    assert f"ws://localhost:{opened.port}/ws" in text


@pytest.mark.parametrize(
    "origin", ["", "null", "http://evil.example", "http://localhost:{port}", "https://127.0.0.1:{port}"]
)
def test_another_sites_page_opens_no_screen(opened, origin):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer, text = opened.ask("/ws", **upgrade, Origin=origin.format(port=opened.port))
    assert (answer.status, text) == (403, "Only this server's own page opens a screen.\n")
    assert opened.screens() == []


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="no /proc/net/tcp: the system's sockets cannot be listed"
)
def test_it_listens_on_the_loopback_address_and_nowhere_else(opened):
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{opened.port:04X}")}
    assert listening == {f"0100007F:{opened.port:04X}"}


# What comes with every answer


def test_every_answer_forbids_what_is_foreign(opened):
    asked = [opened.ask(path) for path in ("/", "/static/textual.js", "/nothing", "/ws")]
    asked += [opened.ask("/", cookie="a=b"), opened.ask("/", host="evil.example"), opened.ask("/", method="POST")]
    assert [answer.status for answer, _ in asked] == [200, 200, 404, 403, 403, 403, 405]
    for answer, _ in asked:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        sources = {source for value in policy.values() for source in value.split()}
        ours = {f"ws://{name}:{opened.port}" for name in ("127.0.0.1", "localhost")}
        assert sources == {"'none'", "'self'", "'unsafe-inline'", "data:", *ours}
        assert policy["script-src"] == "'self'"


def test_the_page_names_no_other_place(opened):
    _, text = opened.ask("/")
    assert re.findall(r"\w+://[^\s\"'<]+", text) == [f"ws://127.0.0.1:{opened.port}/ws"]


def test_only_listed_files_are_given(opened):
    for name in ("", "x", "../server.py", "..%2fserver.py", "%2e%2e/server.py", "/etc/passwd", "index.html"):
        assert opened.ask(f"/static/{name}")[0].status in (403, 404), name


# The screens


async def test_a_tab_shows_the_screen_and_takes_keys(opened):
    async with opened.tab() as page:
        await page.wait_for(TASK)
        await page.wait_for("READ-ONLY")
        for nonsense in ("{", "[]", "7", '["stdin"]', '["resize", {"width": "x"}]', '["quit"]', "[" * 5000):
            await page.send(nonsense)
        await page.send(["resize", {"width": 10**9, "height": -1}])
        await page.send(["resize", {"width": 120, "height": 40}])
        await page.press("1")
        await page.wait_for("Approvals")
        assert "Needs you" not in page.text


async def test_a_screen_belongs_to_its_tab_and_ends_with_it(opened):
    async with opened.tab() as first:
        await first.wait_for(TASK)
        async with opened.tab(size=(80, 24)) as second:
            await second.wait_for(TASK)
            assert len(opened.screens()) == 2
        await until(lambda: len(opened.screens()) == 1, "the second screen to end")
        await first.press("1")
        await first.wait_for("Approvals")
    await until(lambda: not opened.screens(), "the first screen to end")


async def test_quitting_in_a_tab_ends_the_tab(opened):
    async with opened.tab() as page:
        await page.wait_for(TASK)
        await page.press("q")
        await until(lambda: page.ended, "the tab to end")
    await until(lambda: not opened.screens(), "the screen to end")


async def test_a_read_only_tab_decides_nothing_and_starts_no_collector(serve, root):
    served = serve().enter()
    before = request_in(root)
    async with served.tab() as page:
        await page.wait_for(REQUEST)
        await page.press("a")
        await page.wait_for(REASON)
        for _ in range(20):
            for key in "adc\r":
                await page.press(key)
            await asyncio.sleep(0.05)  # beyond the moment from which an open dialog listens; a shorter one proves less
        await page.press("\x1b")
        assert served.collectors() == []
    await until(lambda: not served.screens(), "the screen to end")
    assert request_in(root) == before


async def test_a_read_write_tab_decides_and_the_record_shows_no_terminal(serve, root):
    served = serve("--read-write").enter()
    assert served.said["readonly"] is False
    async with served.tab() as page:
        await page.wait_for(REQUEST)
        await page.press("a")
        await page.wait_for(REASON)
        await page.press("a")
        while request_in(root)[0].state == "pending":
            await page.press("a")
            await asyncio.sleep(0.05)
    found, _ = request_in(root)
    assert found.state == "approved"
    assert (found.decision.by.uid, found.decision.by.tty) == (os.getuid(), "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
async def test_no_screen_and_no_collector_outlives_the_server(serve, number):
    served = serve("--read-write").enter()
    async with served.tab() as page:
        await page.wait_for(TASK)
        await until(served.collectors, "a collector")
        served.process.send_signal(number)
        code = await asyncio.to_thread(served.process.wait)
        if number == signal.SIGKILL:
            await until(lambda: not served.screens() and not served.collectors(), "all to end")
        # Any other signal it outlives until they have gone.
        assert (code, served.screens(), served.collectors()) == (-9 if number == signal.SIGKILL else 0, [], [])


async def test_a_workspace_of_any_name_is_served_and_no_shell_reads_it(serve, tmp_path):
    root = tmp_path / "a b'\"$(touch made)`touch made`;\n&|>made*"
    root.mkdir(mode=0o700)
    fill(root)
    served = serve(at=root).enter()
    async with served.tab() as page:
        await page.wait_for(TASK)
    assert "&#x27;&quot;$(touch made)" in served.ask("/")[1]
    assert list(tmp_path.rglob("made*")) == []
    assert not (ROOT / "made").exists()


async def test_why_a_screen_cannot_open_is_said_in_the_tab(serve, root):
    served = serve().enter()
    (root / ".trainflow").rename(root / "elsewhere")
    async with served.tab() as page:
        await page.wait_for("There is no workspace in")
        await until(lambda: page.ended, "the tab to end")


def contents(place, pids):
    """Of all files of a place, and of what the system tells about processes."""
    files = [path for path in place.rglob("*") if path.is_file()]
    files += [Path(f"/proc/{pid}/{name}") for pid in pids for name in ("cmdline", "environ")]
    return {path: path.read_bytes() for path in files if path.exists()}


async def test_the_secrets_are_in_no_file_and_in_no_process(serve, root, tmp_path):
    served = serve("--read-write").enter()
    served.ask(f"/?token={served.token}")
    served.ask("/nothing?token=" + served.token)
    secrets = [served.token.encode(), served.cookie.partition("=")[2].encode()]
    async with served.tab() as page:
        await page.wait_for(TASK)
        held = contents(tmp_path, [*served.screens(), served.process.pid])
    assert any("ledger.db" in path.name for path in held)
    assert [path for path, content in held.items() if any(secret in content for secret in secrets)] == []
