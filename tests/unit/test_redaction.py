"""Secrets are found wherever they stand, clean text passes, and nothing is marked twice."""

from __future__ import annotations

import base64
import json
import logging
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui import log
from trainflow_tui.redaction import KINDS, redact, secret_values

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus"
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"


class Planter:
    """Values in the form of each kind, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, alphabet: str, length: int) -> str:
        return "a1B2" + "".join(self.random.choices(alphabet, k=length - 4))

    def jwt(self) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.text(ALNUM, 12), "iat": 1767225600})
        coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return ".".join([*coded, self.text(URLSAFE, 43)])

    def private_key(self) -> str:
        body = "\n".join(self.text(ALNUM + "+/", 64) for _ in range(12))
        name = self.random.choice(["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
        return f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n-----END {name}PRIVATE KEY-----"

    def kinds(self) -> dict[str, str]:
        """A secret of each kind that needs no sign around it."""
        base32 = string.ascii_uppercase + "234567"
        return {
            "anthropic": "sk-ant-api03-" + self.text(URLSAFE, 93) + "AA",
            "openai": "sk-proj-" + self.text(URLSAFE, 120),
            "openai-old": "sk-" + self.text(HEX, 32),
            "huggingface": "hf_" + self.text(ALNUM, 34),
            "github": "ghp_" + self.text(ALNUM, 36),
            "github-fine": "github_pat_" + self.text(ALNUM, 22) + "_" + self.text(ALNUM, 59),
            "gitlab": "glpat-" + self.text(URLSAFE, 20),
            "slack": "xoxb-123456789012-1234567890123-" + self.text(ALNUM, 24),
            "aws-key-id": "AKIA" + "".join(self.random.choices(base32, k=16)),
            "cloud-key-id": "LTAI5t" + self.text(ALNUM, 18),
            "google": "AIza" + self.text(URLSAFE, 35),
            "package-index": "npm_" + self.text(ALNUM, 36),
            "jwt": self.jwt(),
            "private-key": self.private_key(),
        }

    def in_context(self) -> dict[str, tuple[str, str]]:
        """A secret that only its surroundings give away, and the text that it stands in, for `str.format`."""
        word = self.text(ALNUM, 16)
        return {
            "aws-secret": (self.text(ALNUM + "/+", 40), "aws_secret_access_key = {}"),
            "azure": (self.text(ALNUM + "/+", 86) + "==", "DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=x"),
            "wandb": (self.text(HEX, 40), "WANDB_API_KEY={}"),
            "dingtalk": (self.text(HEX, 64), "https://oapi.dingtalk.com/robot/send?access_token={}"),
            "feishu": (f"{self.text(HEX, 8)}-1234-5678-9abc-{self.text(HEX, 12)}", "open.feishu.cn/open-apis/bot/v2/hook/{}"),
            "slack-hook": (f"T0{self.text(ALNUM, 9)}/B0{self.text(ALNUM, 9)}/{self.text(ALNUM, 24)}", "https://hooks.slack.com/services/{}"),
            "bearer": (self.text(URLSAFE, 40), "Authorization: Bearer {}"),
            "basic": (base64.b64encode(word.encode()).decode(), "'Authorization': 'Basic {}'"),
            "curl": (self.text(URLSAFE, 40), 'curl -H "Authorization: token {}" https://host/x'),
            "url": (word, "postgresql://trainer:{}@db-1:5432/runs"),
            "signed-url": (self.text(HEX, 64), "https://bucket.s3.amazonaws.com/x?X-Amz-Date=20260304T120000Z&X-Amz-Signature={}"),
            "cookie": (f"session={word}; Path=/", "Set-Cookie: {}"),
            "env-password": (f"correct{word}", "DB_PASSWORD={}"),
            "word-password": ("correcthorse", "MYSQL_ROOT_PASSWORD={}"),
            "json-password": ("correct horse battery", '"password": "{}"'),
            "yaml-password": ("correcthorse", "db:\n  password: {}\n  port: 5432"),
            "json-in-json": ("correct horse battery", r'"text": "{{\"password\": \"{}\"}}"'),
            "flag": (f"p{word}", "mysqldump --password {} runs"),
            "argv": (f"p{word}", '["mysqldump", "--db-password", "{}", "runs"]'),
            "list": (f"t{word}", "['huggingface-cli', 'login', '--token', '{}']"),
            "token": (word, "export NGC_TOKEN={}"),
            "ruby": (word, ":secret => '{}'"),
            "netrc": (self.text(HEX, 40), "machine api.wandb.ai\n  login user\n  password {}\n"),
            "sshpass": ("correcthorse", "sshpass -p {} ssh node-1"),
            "docker": (word, "docker run -e API_KEY='{}' image"),
        }  # fmt: skip


SURROUNDINGS = (
    "{}",
    "2026-03-04 12:00:00 node-1 trainer[311]: using {} from the environment",
    "RuntimeError: cannot log in with {}.",
    '{{"text": "first line\\n{}\\tnext"}}',
    '  File "train.py", line 7, in <module>\n    client({})\n',
    "trace:{},",
    "(值 {})",
)


def test_two_hundred_planted_secrets_are_all_found():
    planted = 0
    missed = []
    for seed in range(4):
        planter = Planter(seed)
        for name, secret in planter.kinds().items():
            for surrounding in random.Random(f"{seed}{name}").sample(SURROUNDINGS, 3):
                planted += 1
                text, count = redact(surrounding.format(secret))
                if secret in text or count != 1:
                    missed.append((name, text))
        for name, (secret, context) in planter.in_context().items():
            planted += 1
            text, count = redact("before\n" + context.format(secret) + "\nafter")
            if secret in text or count != 1 or not text.startswith("before\n") or not text.endswith("after"):
                missed.append((name, text))
    assert missed == []
    assert planted >= 200


def test_secrets_between_each_other_are_all_found_and_the_words_around_them_stay():
    planter = Planter(9)
    secrets = list(planter.kinds().values())
    text, count = redact("start " + " and ".join(secrets) + " end")
    assert count == len(secrets)
    assert text.startswith("start [redacted:")
    assert text.endswith("] end")
    assert text.count(" and ") == len(secrets) - 1


@pytest.mark.parametrize(("name", "mark"), [("github", "github"), ("jwt", "jwt"), ("private-key", "private-key")])
def test_the_mark_says_the_kind_and_is_the_same_for_the_same_secret(name, mark):
    secret = Planter(3).kinds()[name]
    assert redact(f"{secret} {secret}") == (f"[redacted:{mark}] [redacted:{mark}]", 2)
    assert mark in KINDS


def test_a_private_key_that_is_cut_off_loses_the_lines_that_are_there():
    begun = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQAAAAAAAAAB"
    assert redact(f"cat id\n{begun}\n$ ls") == ("cat id\n[redacted:private-key]\n$ ls", 1)
    assert redact(begun.replace("\n", "\\n")) == ("[redacted:private-key]", 1)


CLEAN = [
    "iteration 100/ 500 | consumed samples: 1600 | tokens per second: 18234.1 | elapsed time per iteration (ms): 512.3",
    "max_new_tokens=4096 num_tokens: 128000 token_id=151643 tokens=12345678901234",
    'eos_token="<|im_end|>" pad_token=<|endoftext|> bos_token: None unk_token="[UNK]"',
    "tokenizer=Qwen/Qwen2.5-7B-Instruct tokenizer_type: HuggingFaceTokenizer",
    "user@dcu-03's password: ",
    "Permission denied, please try again. Enter password: ********",
    "Invalid password: expired",
    "PWD=/root/work/main OLDPWD=/tmp",
    'password = os.environ["DB_PASSWORD"]',
    "connect(host, password=password, token=self.token)",
    "def connect(password: str, token: str | None = None) -> None:",
    'if password == "":',
    "DB_PASSWORD=${DB_PASSWORD} TOKEN=$(cat /run/secrets/token) API_KEY=<your key> SECRET=changed",
    '{"password": null, "token": 17, "secret": ""}',
    "the key: value pairs; primary key=17; sort_key=window_ns cache_key=6f1ed002ab5595859014ebf0951522d9",
    "monkey=banana2000000000 keyboard: qwerty1234567",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl user@host",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 commit 52ddd62d8a",
    "http://host:8080/path git@host:owner/name.git https://user@host/x",
    "task-force disk-1234567890abcdef1234567890 risk-a1b2c3d4e5f6a7b8c9d0",
    "sk-toggleable__content-arrow sk-estimator-doc-link",
    "authorization required: Bearer authentication failed",
    "--token-count 4096 --no-password --eos-token '</s>'",
    "[rank3] NCCL INFO Channel 00/0 : 3[b1000] -> 0[27000] via P2P/IPC comm 0x55d0c8c5a3f0 nRanks 04",
    "a password is needed, and a token may expire",
    "学习率 1.5e-4，口令：无",
]


@pytest.mark.parametrize("text", CLEAN)
def test_what_only_resembles_a_secret_stays(text):
    assert redact(text) == (text, 0)


def test_real_logs_hold_no_false_hit():
    if not CORPUS.exists():
        pytest.skip("the corpus is not beside the project")
    files = [p for folder in ("logs", "health") for p in sorted((CORPUS / folder).iterdir()) if p.is_file()]
    assert len(files) > 50
    assert {p.name: found for p in files if (found := redact(p.read_text("utf-8", "replace"))[1])} == {}


def test_known_values_are_found_without_any_sign():
    environment = {
        "MY_TOKEN": "plainwordsecret",
        "SHORT_TOKEN": "abc",
        "TOKEN_FILE": "not-a-secret",
        "A_SECRET": "/run/x/y/z",
    }
    known = secret_values(environment)
    assert known == ("plainwordsecret",)
    assert redact("uses plainwordsecret, abc", known=known) == ("uses [redacted:known], abc", 1)
    assert redact("ab", known=("ab",)) == ("ab", 0)


FRAGMENTS = st.sampled_from(
    [*Planter(1).kinds().values(), *(c.format(s) for s, c in Planter(1).in_context().values()), *CLEAN, "İ", "\\n", '"']
)


@given(st.lists(FRAGMENTS | st.text(max_size=12), max_size=6), st.sampled_from(["", " ", "\n", ",", "="]))
def test_a_redacted_text_passes_unchanged(parts, between):
    once, _count = redact(between.join(parts))
    assert redact(once) == (once, 0)


@given(st.text())
def test_any_text_is_taken(text):
    redacted, count = redact(text)
    assert count > 0 or redacted == text


def test_the_programs_own_log_holds_no_secret(tmp_path, monkeypatch):
    secret, from_environment = Planter(5).kinds()["github"], "plainwordsecret"
    monkeypatch.setenv("MY_TOKEN", from_environment)
    logger = logging.getLogger("trainflow_tui")
    handlers, level = list(logger.handlers), (logger.level, logger.propagate, logging.raiseExceptions)
    try:
        log.start(tmp_path)
        try:
            raise ValueError(f"refused with {secret} and {from_environment}")
        except ValueError:
            logger.exception("sent %s as %s", from_environment, secret)
    finally:
        for handler in logger.handlers:
            handler.close()
        logger.handlers[:] = handlers
        logger.level, logger.propagate, logging.raiseExceptions = level
    written = (tmp_path / log.FILE_NAME).read_text()
    assert secret not in written
    assert from_environment not in written
    (entry,) = log.read(tmp_path, limit=5)
    assert entry["text"] == "sent [redacted:known] as [redacted:github]"
    assert entry["trace"][-1] == "ValueError: refused with [redacted:github] and [redacted:known]"
