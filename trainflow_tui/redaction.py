"""Secrets out of text that leaves the program: copied, exported, paged, logged. High-precision patterns; knows no file and no screen.

A pattern is here when its hit is almost surely a credential: a vendor's prefix with a length, a header, or an assignment
to a name that says so. A secret without such a sign is not found, unless its value is passed as known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["KINDS", "redact", "secret_values"]

_MARKED: Final = "[redacted:"
_SHORTEST_KNOWN: Final = 8
"""Characters of a known value below which it is not searched for: shorter ones are also ordinary words."""
_KEY_BLOCK_CHARS: Final = 16_384
"""The longest private-key block that is looked for; RSA with 16,384 bits has 12,700 characters."""

_NO_SECRET: Final = re.compile(
    # What stands where a secret would: nothing, a mask, a reference, a word of documentation.
    r"""(?ix) \*+ | \.+ | -+ | x{3,} | \#+ | \$.* | %.* | <.* | \{.* | @.* | \[redacted:.*
    | none | null | nil | n/a | true | false | yes | no | on | off | unset | empty | prompt | required | optional | missing
    | invalid | incorrect | wrong | expired | redacted | hidden | masked | changed | await | your[_-].* | str | bytes | int"""
)
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[A-Za-z]")
_EXPRESSION: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_KEY_OF: Final = re.compile(r"(?i:api|access|private|secret|account|signing|encryption|auth|subscription)[_-]?$")
_FLAG: Final = re.compile(r"--(?:[a-z0-9]{1,20}-){0,3}$")
_LINE_HEAD: Final = re.compile(r"(?:^|\n)[ \t]*(?:- )?[A-Za-z0-9_.-]{0,40}$")
_LINE_REST: Final = re.compile(r"[ \t]*(?:[\r\n]|$)")

Accept = Callable[["re.Match[str]", str], bool]


def _any(_match: re.Match[str], _value: str) -> bool:
    return True


def _mixed(_match: re.Match[str], value: str) -> bool:
    """Letters and digits, as generated values have and words have not."""
    return bool(_DIGIT.search(value) and _LETTER.search(value))


def _assigned(match: re.Match[str], value: str) -> bool:
    """Whether what stands behind a name with `password`, `secret`, `token` or `key` in it is its secret."""
    name, before = match["name"].lower(), match.string[max(0, match.start() - 64) : match.start()]
    if name == "key" and not _KEY_OF.search(before):
        return False
    if match.lastgroup == "flagged" and not _FLAG.search(before):
        return False
    if value.startswith(("/", "~", "./")) or value.lower() == name or _EXPRESSION.fullmatch(value):
        return False
    if not name.startswith("pass"):
        return len(value) >= 12 and _mixed(match, value)
    if match.lastgroup == "said":
        # A colon also ends a clause: the value must look generated, or be all that a line of YAML holds.
        whole_line = _LINE_HEAD.search(before) and _LINE_REST.match(match.string, match.end())
        return bool(whole_line) or (len(value) >= 8 and _mixed(match, value))
    return True


class _Rule(NamedTuple):
    """A kind of secret. The last group of the pattern is what is replaced."""

    kind: str
    literals: tuple[str, ...]
    """In lower case. The pattern is matched only where one of these begins, since `str.find` reads gigabytes a second."""
    pattern: re.Pattern[str]
    accept: Accept = _any


def _rule(kind: str, literals: str, pattern: str, accept: Accept = _any) -> _Rule:
    return _Rule(kind, tuple(literals.split()), re.compile(pattern), accept)


def _token(kind: str, literals: str, pattern: str, accept: Accept = _any) -> _Rule:
    """A value with its vendor's prefix. It begins a word; in a quoted string, maybe behind an escaped line end or tab."""
    return _rule(kind, literals, rf"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))({pattern})", accept)


_QUOTE: Final = r"""\\?["']"""
_WORD: Final = r"""[^\s"'`,;&|<>(){}\[\]\\]"""
_WORD_REST: Final = re.compile(rf"{_WORD}*+")
_UNQUOTED: Final = ("set", "said", "flagged")
_RULES: Final = (
    _token("anthropic", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}+"),
    _token(
        "openai",  # and the many services that took over its form
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+|[A-Za-z0-9]{20,}+)",
        _mixed,
    ),
    _token("huggingface", "hf_", r"hf_[A-Za-z0-9]{30,40}+(?![A-Za-z0-9])"),
    _token("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}+"),
    _token("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,255}+"),
    _token(
        "gitlab",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glft-",
        r"gl(?:pat|dt|rt|ptt|cbt|soat|ft)-[A-Za-z0-9_.-]{20,}+",
    ),
    _token(
        "slack", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{20,}+", _mixed
    ),
    _token("aws-key-id", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    # Alibaba Cloud and Tencent Cloud.
    _token("cloud-key-id", "ltai akid", r"(?:LTAI[A-Za-z0-9]{12,26}+|AKID[A-Za-z0-9]{32}+)(?![A-Za-z0-9])", _mixed),
    _token("google", "aiza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token("package-index", "npm_ pypi-age", r"npm_[A-Za-z0-9]{36}+|pypi-AgE[A-Za-z0-9_-]{40,}+"),
    _token("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _rule(
        "webhook",
        "open-apis/bot/v2/hook/ hooks.slack.com/ .com/api/webhooks/ robot/send?access_token= webhook/send?key=",
        r"(?:open-apis/bot/v2/hook/|hooks\.slack\.com/(?:services|workflows)/|\.com/api/webhooks/"
        r"|robot/send\?access_token=|webhook/send\?key=)([A-Za-z0-9_/-]{20,}+)",
    ),
    _rule("url-password", "://", r"""://[^\s:/?#@"'<>]{0,64}:([^\s/@"'<>]{1,256})(?=@)"""),
    _rule(
        "url-signature",
        "sig= signature= security-token=",
        r"""(?i:sig|signature|security-token)=([^&\s"'<>#]{16,}+)""",
        _mixed,
    ),
    _rule(
        "authorization",
        "authorization",
        rf"(?i:authorization(?:{_QUOTE})?[ \t]*[:=][ \t]*(?:{_QUOTE})?(?:bearer|basic|token|digest|apikey)[ \t]+)"
        r"""([^\s"',;\\]{6,}+)""",
    ),
    _rule("authorization", "authorization:", r"(?i:authorization:)[ \t]*([^\s\"',;\\]{16,}+)", _mixed),
    _rule("authorization", "bearer", r"(?i:bearer)[ \t]+([A-Za-z0-9._~+/-]{16,}+=*)", _mixed),
    _rule("cookie", "cookie:", r"""(?i:cookie:)[ \t]*([\w.-]{1,64}=[^\r\n"']{8,})"""),
    _rule(
        "secret",
        "password passwd passphrase pass_phrase pwd secret token key credential",
        r"(?i:(?P<name>password|passwd|pass_?phrase|pwd|secret|token|key|credentials?))"
        r"(?:"
        # In quotes, on either side of a sign: JSON, YAML, a shell, a literal; also inside another quoted string.
        rf"(?:{_QUOTE})?[ \t]*(?:=>?(?!=)|:)[ \t]*(?P<open>{_QUOTE})(?P<quoted>(?:(?!(?P=open))[^\r\n]){{3,16384}})(?=(?P=open)|[\r\n]|$)"
        rf"|[ \t]*=[ \t]*(?P<set>{_WORD}{{3,512}}+)(?![(\[])"
        rf"|[ \t]*:[ \t]*(?P<said>{_WORD}{{3,512}}+)(?![(\[])"
        # A flag and its value, as words or as an argv in JSON.
        rf"|(?:{_QUOTE})?(?:[ \t]+|,[ \t]*)(?:{_QUOTE})?(?P<flagged>(?!-){_WORD}{{3,512}}+)"
        r")",
        _assigned,
    ),
    # .netrc, over one line or several; the option of sshpass.
    _rule("password", "machine", r"machine[ \t]+\S{1,255}\s+login[ \t]+\S{1,255}\s+password[ \t]+(\S{3,256}+)"),
    _rule("password", "sshpass", rf"sshpass[ \t]+-p[ \t]*(?:{_QUOTE})?([^\s\"'\\]{{3,256}}+)"),
)

_ANY_LITERAL: Final = re.compile("|".join(re.escape(literal) for rule in _RULES for literal in rule.literals))
_SHORT: Final = 4096
"""Below it one pass of `_ANY_LITERAL` is cheaper than a find for each literal: 5 µs for a cell instead of 50."""

_KEY_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES: Final = re.compile(r"(?:(?:\\[nr]|\s)*+[A-Za-z0-9+/=]{16,}+)*+")

KINDS: Final = tuple(sorted({"private-key", "known", *(rule.kind for rule in _RULES)}))
"""What a mark may say: `[redacted:kind]`."""

_NAMES_A_SECRET: Final = re.compile(
    r"(?i:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|(?:API|ACCESS|PRIVATE|SECRET|ACCOUNT|SIGNING|ENCRYPTION)_?KEY|CREDENTIALS?)$"
)


def redact(text: str, *, known: Sequence[str] = ()) -> tuple[str, int]:
    """Replace every secret by `[redacted:kind]`; returns the text and how many were replaced.

    Deterministic: the same text gives the same result in every process, and a redacted text passes unchanged. Line
    ends stay, except those inside a private key. Linear in the length of the text.

    Args:
        text: what is about to leave: any length, any characters.
        known: values that are secret whatever they look like (`secret_values`); those under 8 characters are ignored.
    """
    count = 0
    for value in sorted({v for v in known if len(v) >= _SHORTEST_KNOWN}, key=len, reverse=True):
        count += text.count(value)
        text = text.replace(value, f"{_MARKED}known]")
    if "PRIVATE KEY" in text:
        text, found = _without_private_keys(text)
        count += found
    if len(text) < _SHORT and not _ANY_LITERAL.search(_lowered(text)):
        return text, count
    found = 1
    while found:  # a secret that stuck to another begins a word once that one is gone
        text, found = _one_pass(text)
        count += found
    return text, count


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret, without paths; for `redact(known=…)`."""
    return tuple(
        value
        for name, value in sorted(environment.items())
        if _NAMES_A_SECRET.search(name) and len(value) >= _SHORTEST_KNOWN and not value.startswith(("/", "~", "."))
    )


def _one_pass(text: str) -> tuple[str, int]:
    count = 0
    lowered = _lowered(text)
    for rule in _RULES:
        text, found = _apply(rule, text, lowered)
        if found:
            count += found
            lowered = _lowered(text)
    return text, count


def _lowered(text: str) -> str:
    # U+0130 alone has a lower case of two characters; positions must stay.
    return text.replace("İ", "I").lower()


def _apply(rule: _Rule, text: str, lowered: str) -> tuple[str, int]:
    """Replace the rule's secrets; what only stands for one stays."""
    pieces: list[str] = []
    at = at_least = count = 0
    for place in sorted({place for literal in rule.literals for place in _places(literal, lowered)}):
        match = rule.pattern.match(text, place) if place >= max(at, at_least) else None
        if match is None:
            continue
        secret = match.lastindex or 0
        value = match[secret]
        if _NO_SECRET.fullmatch(value) or not rule.accept(match, value):
            # No end of a value without a digit or a letter has both: what was read is not read again.
            at_least = match.end(secret) if rule.accept is _mixed else at_least
            continue
        kind = "password" if "name" in rule.pattern.groupindex and match["name"].lower()[0] == "p" else rule.kind
        pieces += (text[at : match.start(secret)], f"{_MARKED}{kind}]")
        at = match.end(secret)
        if match.lastgroup in _UNQUOTED:
            at = _WORD_REST.match(text, at).end()  # type: ignore[union-attr]  # an empty rest matches
        count += 1
    return ("".join([*pieces, text[at:]]), count) if count else (text, 0)


def _places(literal: str, lowered: str) -> list[int]:
    found: list[int] = []
    place = lowered.find(literal)
    while place >= 0:
        found.append(place)
        place = lowered.find(literal, place + 1)
    return found


def _without_private_keys(text: str) -> tuple[str, int]:
    """Whole blocks in the armour of RFC 7468 and OpenPGP; of one that is cut off, the lines that are there."""
    pieces: list[str] = []
    at = count = 0
    while begin := _KEY_BEGIN.search(text, at):
        end = _KEY_END.search(text, begin.end(), begin.end() + _KEY_BLOCK_CHARS)
        stop = end.end() if end else _end_of_lines(text, begin.end())
        pieces += (text[at : begin.start()], f"{_MARKED}private-key]")
        at = stop
        count += 1
    return "".join([*pieces, text[at:]]), count


def _end_of_lines(text: str, start: int) -> int:
    lines = _KEY_LINES.match(text, start, start + _KEY_BLOCK_CHARS)
    return lines.end() if lines else start
