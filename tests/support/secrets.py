"""Secrets of every shape, put together when the tests run: none stands in any file. And the ways in which they appear.

for name, secret in SHAPES.items():
    for way in WAYS.values():
        assert not leaks(secret, redact(way(secret)))
"""

import html
import json
import re
import string
import urllib.parse
from collections.abc import Callable

MIXED = "".join(
    f"{a}{b}{n % 10}" for n, (a, b) in enumerate(zip(string.ascii_uppercase, string.ascii_lowercase, strict=True))
)
"""Aa0Bb1Cc2...: 78 characters of every class, in no language."""
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 4
UPPER = "".join(c for c in MIXED if not c.islower())
DIGITS = "31415926535897932384"


def body(length: int, alphabet: str = MIXED) -> str:
    return (alphabet * (length // len(alphabet) + 1))[:length]


def a_pem_key(label: str = "RSA ", lines: int = 6) -> str:
    rows = [body(64, MIXED[n:] + "+/" + MIXED) for n in range(lines)]
    return "\n".join(
        [f"-----BEGIN {label}PRIVATE" + " KEY-----", *rows, "Qw==", f"-----END {label}PRIVATE" + " KEY-----"]
    )


SHAPES: dict[str, str] = {
    "openai": "sk-" + body(48),
    "openai project": "sk-" + "proj-" + body(40) + "_" + body(20) + "-" + body(30),
    "openai service account": "sk-" + "svcacct-" + body(60),
    "openai admin": "sk-" + "admin-" + body(60),
    "anthropic": "sk-" + "ant-api03-" + body(40) + "-" + body(40) + "_AA",
    "openrouter": "sk-" + "or-v1-" + body(64, HEX),
    "deepseek": "sk-" + body(32, HEX),
    "github classic": "ghp" + "_" + body(36),
    "github oauth": "gho" + "_" + body(36),
    "github user": "ghu" + "_" + body(36),
    "github server": "ghs" + "_" + body(36),
    "github refresh": "ghr" + "_" + body(36),
    "github fine-grained": "github" + "_pat_" + body(22) + "_" + body(59),
    "gitlab": "glpat" + "-" + body(20),
    "gitlab routable": "glpat" + "-" + body(27) + ".01." + body(9, HEX),
    "aws id": "AKIA" + body(16, UPPER),
    "aws session id": "ASIA" + body(16, UPPER),
    "google api": "AIza" + "Sy" + body(33),
    "google oauth": "ya29" + "." + body(60),
    "google client": "GOCSPX" + "-" + body(28),
    "slack bot": "xoxb" + "-" + DIGITS[:12] + "-" + DIGITS[:12] + "-" + body(24),
    "slack user": "xoxp" + "-" + DIGITS[:12] + "-" + DIGITS[:12] + "-" + body(32, HEX),
    "slack app": "xapp" + "-1-A" + body(10, UPPER) + "-" + DIGITS[:12] + "-" + body(64, HEX),
    "stripe live": "sk" + "_live_" + body(24),
    "stripe restricted": "rk" + "_live_" + body(24),
    "npm": "npm" + "_" + body(36),
    "pypi": "pypi" + "-AgEIcHlwaS5vcmc" + body(80),
    "hugging face": "hf" + "_" + body(34, string.ascii_letters),
    "jwt": "eyJ" + body(20) + ".eyJ" + body(40) + "." + body(43),
    "sendgrid": "SG" + "." + body(22) + "." + body(43),
    "twilio key": "SK" + body(32, HEX),
    "digitalocean": "dop" + "_v1_" + body(64, HEX),
    "databricks": "dapi" + body(32, HEX),
    "vault": "hvs" + "." + body(90),
    "age": "AGE" + "-SECRET-KEY-1" + body(58, UPPER),
    "discord bot": "MTk4NjIyNDgzNDcxOTI1MjQ4" + "." + body(6) + "." + body(38),
    "telegram bot": DIGITS[:10] + ":AA" + body(33),
    "azure client secret": "abc" + "8Q~" + body(34),
    "terraform": body(14) + ".atlasv1." + body(60),
    "linear": "lin" + "_api_" + body(40),
    "notion": "ntn" + "_" + body(46),
    "shopify": "shpat" + "_" + body(32, HEX),
    "grafana": "glsa" + "_" + body(32) + "_" + body(8, HEX),
    "groq": "gsk" + "_" + body(52),
    "docker": "dckr" + "_pat_" + body(27),
    "tailscale": "tskey" + "-auth-" + body(17) + "-" + body(32),
    "perplexity": "pplx" + "-" + body(48),
    "mailgun": "key" + "-" + body(32, HEX),
    "mailchimp": body(32, HEX) + "-us" + "19",
    "square": "sq0atp" + "-" + body(22),
    "doppler": "dp.pt" + "." + body(43),
    "atlassian": "ATATT3x" + body(180),
    "replicate": "r8" + "_" + body(37),
    "xai": "xai" + "-" + body(80),
    "private key": a_pem_key(),
    "private key, no kind": a_pem_key(""),
    "aws pair": "AKIA" + body(16, UPPER) + ":" + body(40, MIXED + "/+"),
    "newrelic": "NRAK" + "-" + body(27, UPPER),
    "rubygems": "rubygems" + "_" + body(48, HEX),
    "postman": "PMAK" + "-" + body(24, HEX) + "-" + body(34, HEX),
}

WAYS: dict[str, Callable[[str], str]] = {
    "prose": lambda secret: f"I used {secret}, as you said.",
    "Markdown": lambda secret: f"| `{secret}` | **{secret}** |",
    "JSON": lambda secret: json.dumps({"value": secret, "after": 1}),
    "a JSON list": lambda secret: json.dumps({"env": [f"VALUE={secret}", secret]}),
    "a JSON string with escapes": lambda secret: json.dumps(f"first\n{secret}\nlast"),
    "JSON in JSON": lambda secret: json.dumps({"line": json.dumps({"value": f"one\n{secret}\ttwo"})}),
    "JSON in JSON in JSON": lambda secret: json.dumps(json.dumps(json.dumps({"value": f"one\n{secret}\ttwo"}))),
    "a query": lambda secret: f"https://example.org/path?a=1&v={urllib.parse.quote(secret, safe='')}&b=2",
    "a query, not quoted": lambda secret: f"https://example.org/path?a=1&v={secret}&b=2",
    "a path": lambda secret: f"https://example.org/{secret}/x",
    "userinfo": lambda secret: f"https://x:{urllib.parse.quote(secret, safe='')}@example.org/x",
    "a fragment": lambda secret: f"https://example.org/#access_token={secret}",
    "env": lambda secret: f"PATH=/usr/bin\nVALUE={secret}\nHOME=/home/u\n",
    "export": lambda secret: f"export VALUE={secret}; make",
    "export, quoted": lambda secret: f'export VALUE="{secret}" && make',
    "docker": lambda secret: f"docker run -e VALUE={secret} -p 80:80 image",
    "docker, long": lambda secret: f"docker run --env=VALUE={secret} image",
    ".env": lambda secret: f"# what it needs\nVALUE='{secret}'\nOTHER=1\n",
    "YAML": lambda secret: f"service:\n  value: {secret}\n  other: 1\n",
    "a YAML list": lambda secret: f"args:\n- {secret}\n- other\n",
    "TOML": lambda secret: f'value = "{secret}"\n',
    "INI, from Windows": lambda secret: f"value={secret}\r\nother=1\r\n",
    "PowerShell": lambda secret: f"$env:VALUE = '{secret}'",
    "XML": lambda secret: f"<value>{secret}</value>",
    "HTML": lambda secret: f"value=&quot;{secret}&quot;",
    "CSV": lambda secret: f"a,{secret},b",
    "SQL": lambda secret: f"INSERT INTO t VALUES ('{secret}');",
    "a diff": lambda secret: f"-VALUE={secret}\n+VALUE={secret}\n",
    "Python's repr": lambda secret: repr({"value": secret}),
    "a coloured terminal": lambda secret: f"\x1b[32m{secret}\x1b[0m done",
}  # fmt: skip


def unescaped(text: str) -> str:
    return re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)


ESCAPES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "a JSON of nothing but escapes": (
        lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
        unescaped,
    ),
    "bytes of nothing but escapes": (
        lambda text: "".join(f"\\x{ord(each):02x}" for each in text),
        unescaped,
    ),
    ".NET": (
        lambda text: re.sub("[\"&'<>+`]", lambda each: f"\\u{ord(each[0]):04X}", text),
        unescaped,
    ),
    "JSON in .NET": (
        lambda text: json.dumps(re.sub("[\"&'<>+`]", lambda each: f"\\u{ord(each[0]):04X}", text)),
        lambda text: unescaped(json.loads(text)),
    ),
    "PHP": (lambda text: text.replace("/", "\\/"), lambda text: text.replace("\\/", "/")),
    "a template": (
        lambda text: html.escape(text).replace("=", "&#x3D;").replace("+", "&#43;").replace("/", "&#x2F;"),
        html.unescape,
    ),
}
"""How serialisers write what they need not escape, and how that reads again."""


CUTS: dict[str, Callable[[str], str]] = {
    "by dots": lambda secret: f"see {secret[: len(secret) * 2 // 3]}…",
    "in the middle": lambda secret: f"see {secret[: len(secret) // 2]}…120 tokens truncated…{secret[-9:]} end",
    "with a word of it": lambda secret: f"see {secret[: len(secret) * 2 // 3]}[... 40 characters omitted ...]\nnext",
}
"""Where another program has cut a text before memoryd saw it."""
WITHOUT_PREFIX = {"mailchimp", "discord bot", "telegram bot", "azure client secret", "terraform"}
"""Cut in half by others, these no longer show what they were."""


def leaks(secret: str, text: str) -> bool:
    """Whether eight characters in a row of what makes the secret secret are still there."""
    told = secret.partition("\n-----END")[0]
    secret_part = told[len(told) // 3 :]
    return any(secret_part[at : at + 8] in text for at in range(max(1, len(secret_part) - 7)))


def secret_parts(secret: str) -> list[str]:
    """Pieces of 12 characters from what makes the secret secret, of which one is in any 18 that stay."""
    told = secret.partition("\n-----END")[0]
    lines = told[len(told) // 3 :].split("\n")
    return [line[at : at + 12] for line in lines for at in range(0, max(1, len(line) - 11), 6) if len(line) >= 8]


HOSTILE = [
    "sk-", "sk-proj-", "pypi-", "eyJ", "\\neyJ", "AKIA", "token", 'password="', 'password=\\"', "://a:b",
    "-----BEGIN PRIVATE" + " KEY-----",
    "-----END PRIVATE" + " KEY-----", "Cookie: a=", "\\", "a-", "sk-aB3…", "secret\\", "curl ",
    "\\u0067", "\\\\", "\\u0022token\\u0022:\\u0022", "&amp;", "&#x3D;",
]  # fmt: skip
"""Repeated, each of these makes a careless pattern look at the rest of the text from each of its occurrences."""
ODD = [
    "eyJa.", "ghp_aB3", "token=", "://", "%3A%2F%2F", "Authorization: Bearer ", "login a password ", '"', "A",
    "token: \\n", "key-",
    ".aaaaaa.", "M.aaaaaa.", ":AA", "[... ", "…", "--password ", "a1Q~", "pass: ", "Private-Lines: 1\n", "auth",
    "asic Aa0", "-us1",
    "-----BEGIN PRIVATE" + " KEY-----\nAAAA\\", "AKIA" + "A" * 16 + " ", "x=", "\n", "token[", "İ", "\ud800",
    "\\u005c", "\\\\u0022", "TOKEN\\u003dabc1\\u002b", "&amp;amp;#x3D;",
]  # fmt: skip
