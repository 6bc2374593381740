"""The shapes of secrets that show by themselves what they are: one table, and three finders.

Every shape has a literal trigger. Triggers are looked for with `str.find`, which runs at memory speed, and only where
one stands a regular expression is tried, anchored there: ordinary text costs little, hostile text stays linear. What is
a secret only because of the name before it (`FOO_TOKEN=...`) is in redact.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

Span = tuple[int, int, int, str]
"""Start, end, rank (of spans that overlap the lowest gives its kind), kind."""

EDGE: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9a-fA-F]{2})|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
)
"""Where a token may begin: after no letter or digit, or after what is an escape (JSON, URL, terminal colour)."""
_DOTS = r"(?:…|\.{3}|\\u2026)"
MARK: Final = (
    rf"(?:\s?[\[<(]\s?(?:{_DOTS}|\d[\d,]* \w+ (?:truncated|omitted|cut)|truncated|omitted|cut|snip)"
    r"[^\n\]>)]{0,60}[\]>)]"
    rf"|{_DOTS}(?:\s?\d[\d,]* \w+(?: \w+)?\s?{_DOTS})?|\*{{3,}})"
)
"""What tools put where they cut a text: `…`, `...`, `[truncated]`, `…120 tokens truncated…`, `***`."""
REST: Final = r"[A-Za-z0-9_+/=~-]*"
"""What follows such a mark without a space is the other end of the secret."""

_ALNUM, _WORD, _DOTTED = "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[A-Za-z0-9_.=-]"
_HEX, _UPPER, _BASE64 = "[0-9a-f]", "[A-Z0-9]", "[A-Za-z0-9+/=_-]"

PREFIXED: Final[tuple[tuple[str, str, str, int], ...]] = (
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None-", _WORD, 16),
    ("anthropic", "sk-ant-", _WORD, 16),
    ("openrouter", "sk-or-v1-", _ALNUM, 16),
    ("langfuse", "sk-lf-", _WORD, 16),
    ("api_key", "sk-", _ALNUM, 20),
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 20),
    ("github", "github_pat_", "[A-Za-z0-9_]", 20),
    ("gitlab", "glpat- gldt- glrt- glptt- glcbt- glsoat- glft-", _DOTTED, 16),
    ("aws", "AKIA ASIA ABIA ACCA", _UPPER, 16),
    ("google", "AIza", _WORD, 30),
    ("google", "GOCSPX- ya29. 1//0", _DOTTED, 20),
    ("slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe. xoxc- xoxd- xapp-", "[A-Za-z0-9.%-]", 10),
    ("stripe", "sk_live_ rk_live_ sk_test_ rk_test_ whsec_", _BASE64, 10),
    ("npm", "npm_", _ALNUM, 30),
    ("pypi", "pypi-", _WORD, 32),
    ("huggingface", "hf_ api_org_", _ALNUM, 24),
    ("sendgrid", "SG.", _DOTTED, 40),
    ("twilio", "SK", _HEX, 32),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", _HEX, 32),
    ("databricks", "dapi", "[0-9a-f-]", 32),
    ("vault", "hvs. hvb. hvr.", _WORD, 20),
    ("age", "AGE-SECRET-KEY-1", _UPPER, 40),
    ("notion", "secret_ ntn_", _ALNUM, 40),
    ("linear", "lin_api_", _ALNUM, 30),
    ("shopify", "shpat_ shpss_ shpca_ shppa_", _HEX, 32),
    ("newrelic", "NRAK-", _UPPER, 20),
    ("grafana", "glsa_ glc_", _BASE64, 30),
    ("sentry", "sntrys_ sntryu_", _BASE64, 30),
    ("planetscale", "pscale_", _DOTTED, 30),
    ("doppler", "dp.pt. dp.st. dp.ct.", _ALNUM, 30),
    ("pulumi", "pul-", _HEX, 40),
    ("rubygems", "rubygems_", _HEX, 40),
    ("atlassian", "ATATT3x ATCTT3x", _DOTTED, 30),
    ("square", "sq0atp- sq0csp-", _WORD, 20),
    ("groq", "gsk_", _ALNUM, 30),
    ("xai", "xai-", _ALNUM, 40),
    ("perplexity", "pplx-", _ALNUM, 30),
    ("replicate", "r8_", _ALNUM, 30),
    ("nvidia", "nvapi-", _WORD, 40),
    ("langsmith", "lsv2_", "[A-Za-z0-9_]", 30),
    ("supabase", "sbp_ sb_secret_", _WORD, 20),
    ("docker", "dckr_pat_", _WORD, 20),
    ("postman", "PMAK-", _WORD, 40),
    ("tailscale", "tskey-", _WORD, 16),
    ("onepassword", "ops_eyJ", _BASE64, 60),
    ("figma", "figd_", _WORD, 30),
    ("alibaba", "LTAI", _ALNUM, 16),
    ("artifactory", "AKCp", _ALNUM, 60),
)
"""Kind, prefixes, what the body is made of, its least length. No greatest: the tail of a longer form must not stay."""

_NO_WORDS = r"(?![a-z]+(?:[_-][a-z]+){1,12}(?![A-Za-z0-9_-]))"
"""`sk-proj-your-key-here` and `pypi-publish-workflow` are words, not keys."""

DONE: Final = r"\[REDACTED_SECRET"
_CRED = r"(?P<secret>[A-Za-z0-9._~+/=:-]{%d,})"
_SCHEME = r"(?:basic|bearer|token|api-?key|bot|digest|negotiate|ntlm|key|jwt|hmac|sso-key|aws4-hmac-sha256)"
_HEADER = r"(?i)uthorization\\*[\"'`]?\]?[ \t]{0,2}(?::|=>?|,|%3A)[ \t]{0,2}\\*[\"'`]?"
_SPACE = r"(?:[ \t+]|%20){1,4}"
_WHITE = r"(?:\s|\\[nrt]){1,8}"
_QUOTE = r"\\*[\"'`]?"
_USER = r"[^\s/:@\"'<>\\]{0,200}"
_PASSWORD_AT = rf":(?![$<{{]|{DONE})(?P<secret>[^\s/\"'<>\\]+)@"

SHAPES: Final[tuple[tuple[str, str, int, str], ...]] = (
    ("jwt", "eyJ", 0, (rf"{EDGE}(?<![_-])eyJ(?:{_WORD}{{8,}}\."
        rf"(?:eyJ{_WORD}{{4,}}(?:\.{_WORD}*)*|{_WORD}+(?:\.{_WORD}+)+)(?:{MARK}{REST})?"
        rf"|{_WORD}{{4,}}(?:\.{_WORD}+)*\.?{MARK}{REST})")),
    ("authorization", "uthorization", 0,
        rf"{_HEADER}{_SCHEME}{_SPACE}(?!(?:tokens?|auth\w*|header|scheme)\b)(?:\w+=)?{_CRED % 4}"),
    ("authorization", "uthorization", 0, rf"{_HEADER}(?=[\w.~+/-]*\d){_CRED % 12}"),
    ("authorization", "earer", 0, rf"earer{_SPACE}(?=[A-Za-z._~+/-]*\d){_CRED % 16}"),
    ("authorization", "asic ", 0,
        r"asic (?=[A-Za-z+/]*\d)(?=[a-z0-9+/]*[A-Z])(?P<secret>[A-Za-z0-9+/]{10,}={0,2})(?![\w-])"),
    ("url_password", "://", 0, rf"://{_USER}{_PASSWORD_AT}"),
    ("url_password", ":\\/", 0, rf":\\+/\\+/{_USER}{_PASSWORD_AT}"),
    ("url_password", "%3A%2F%2F", 0, r"%3A%2F%2F[^\s%\"']{0,80}%3A(?P<secret>[^\s\"'@\[]{1,200}?)%40"),
    ("url_password", "://", 0, r"://(?=[A-Za-z_-]*\d)(?P<secret>[A-Za-z0-9_-]{20,})@"),
    ("slack", "hooks.slack.com", 0, r"hooks\.slack\.com\\*/[a-z]+(?P<secret>(?:\\*/[A-Za-z0-9_-]+){2,})"),
    ("discord", "/webhooks", 0, r"/webhooks\\*/\d{5,}\\*/(?P<secret>[\w-]{20,})"),
    ("telegram", ":AA", 12, r"(?<!\d)\d{6,12}:AA[\w-]{30,}"),
    ("mailgun", "key-", 0,
        rf"{EDGE}(?<![_-])key-(?:{_HEX}{{32}}(?![0-9a-f-])|(?=[a-f]*\d){_HEX}{{8,}}{MARK}{REST})"),
    ("telegram", "%3AAA", 12, r"(?<!\d)\d{6,12}%3AAA[\w-]{30,}"),
    ("mailchimp", "-us", 32, r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}\b"),
    ("azure", "Q~", 4, r"[\w~.-]{3}\dQ~[\w~.-]{31,}"),
    ("azure", "sig=", 0, r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})"),
    ("terraform", ".atlasv1.", 20, r"[A-Za-z0-9]{10,20}\.atlasv1\.[\w=-]{20,}"),
    ("putty", "Private-Lines:", 0, r"Private-Lines: \d+(?P<secret>(?:(?:\s|\\[rn])+[A-Za-z0-9+/=]{20,})+)"),
    ("netrc", "login", 0,
        rf"login{_WHITE}[^\s\\\"']{{1,80}}{_WHITE}password{_WHITE}(?!{DONE})(?P<secret>[^\s\\\"']+)"),
    ("cookie", "ookie", 0, (rf"ookie{_QUOTE}[ \t]{{0,2}}[:=, ][ \t]{{0,2}}{_QUOTE}(?!{DONE})"
        r"(?P<secret>[\w.%-]{1,80}=(?![=>])(?:[^\r\n\"'`\\]|\\[^nrtu\"'\\])+)")),
    ("docker", "auth", 0, (r"auth(?:(?<=[\"']auth)|(?<=_auth))\\*[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\*[\"']?"
        r"(?=[A-Za-z+/]*\d)(?P<secret>[A-Za-z0-9+/]{12,}={0,2})")),
    ("password", "curl", 0, (rf"curl\b[^\n]{{0,200}}?[ \t](?:-u|-U|--user|--proxy-user)[ =]{{0,2}}{_QUOTE}"
        rf"[^\s:\"'\\$]{{0,64}}:(?!{DONE})(?P<secret>[^\s\"'\\$]{{2,}})")),
    ("password", "sshpass", 0, rf"sshpass[ \t]+-p[ \t]{{0,2}}{_QUOTE}(?!{DONE})(?P<secret>[^\s\"'\\$]+)"),
)  # fmt: skip
"""Kind, trigger, how far before it a match may begin, pattern; its group `secret` is what goes, else all of it."""

WINDOW: Final = 400
"""Characters after its trigger that a pattern with a lead may look at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape ready to be looked for."""

    kind: str
    trigger: str
    lead: int
    pattern: re.Pattern[str]

    def spans(self, text: str, rank: int) -> Iterator[Span]:
        """Yield what of `text` has this shape."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        at = text.find(self.trigger)
        while at >= 0:
            resume = at + len(self.trigger)
            if self.lead:
                match = self.pattern.search(text, max(0, at - self.lead), at + WINDOW)
            else:
                match = self.pattern.match(text, at)
            if match:
                yield match.start(group), match.end(group), rank, self.kind
                resume = max(resume, match.end())
            at = text.find(self.trigger, resume)


def _prefixed_rules() -> Iterator[Rule]:
    for kind, prefixes, body, least in PREFIXED:
        for prefix in prefixes.split():
            whole = rf"{_NO_WORDS}{body}{{{least},}}(?:{MARK}{REST})?"
            cut = rf"(?=[a-z_-]{{0,40}}[A-Z0-9]|[a-z]{{12}}){body}{{3,}}{MARK}{REST}"
            yield Rule(kind, prefix, 0, re.compile(rf"{EDGE}{re.escape(prefix)}(?:{whole}|{cut})"))


_PREFIX_RULES: Final = tuple(_prefixed_rules())
_SHAPE_RULES: Final = tuple(Rule(kind, trigger, lead, re.compile(source)) for kind, trigger, lead, source in SHAPES)
RANKS: Final = len(_PREFIX_RULES) + len(_SHAPE_RULES)
_RUNS: Final = re.compile(r"[A-Za-z0-9_./…*-]{9,}")
"""Where a prefix can stand at all: a third to a tenth of a text, so that a hundred prefixes cost what ten would."""


def shape_sources() -> list[tuple[str, str, str]]:
    """Return the rules as text, by which it is noticed that they have changed."""
    tables = [(rule.kind, rule.trigger, rule.pattern.pattern) for rule in (*_PREFIX_RULES, *_SHAPE_RULES)]
    others = (_PEM_OPEN, _PEM_CLOSE, _PEM_BODY, _AWS_ID, _AWS_SECRET, _BOT, _BOT_ID)
    return [*tables, *(("other", "", pattern.pattern) for pattern in others)]


def shaped_spans(text: str) -> Iterator[Span]:
    """Yield every secret of `text` that is known by its own shape; spans may overlap and come in no order."""
    runs = "\n".join(set(_RUNS.findall(text)))
    for rank, rule in enumerate(_PREFIX_RULES):
        if rule.trigger in runs:
            yield from rule.spans(text, rank)
    for rank, rule in enumerate(_SHAPE_RULES, len(_PREFIX_RULES)):
        if rule.trigger in text:
            yield from rule.spans(text, rank)
    if "PRIVATE" in text and _PEM_MARK.search(text):
        yield from private_keys(text)
    if "AKIA" in runs or "ASIA" in runs:
        yield from aws_secrets(text)
    yield from bot_tokens(text)


AWS_REACH: Final = 300
_AWS_ID = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")
_AWS_BEGIN = r"(?:(?<![A-Za-z0-9/+])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
_AWS_SECRET = re.compile(
    rf"{_AWS_BEGIN}(?=[^a-z]{{0,39}}[a-z])(?=[^A-Z]{{0,39}}[A-Z])(?:[A-Za-z0-9/+]|%2[BF]){{40}}(?![A-Za-z0-9+=])"
    rf"|{_AWS_BEGIN}(?=[a-z0-9/+]{{0,39}}[A-Z])(?=[A-Z0-9/+]{{0,39}}[a-z])(?=[A-Za-z/+]{{0,39}}\d)[A-Za-z0-9/+]{{6,39}}{MARK}{REST}"
)


def aws_secrets(text: str) -> Iterator[Span]:
    """Yield 40-character secrets near an access key id; alone they cannot be told from any other base64."""
    searched = 0
    for found in _AWS_ID.finditer(text):
        until = found.end() + AWS_REACH
        for secret in _AWS_SECRET.finditer(text, max(searched, found.start() - AWS_REACH), until):
            yield secret.start(), secret.end(), RANKS, "aws"
        searched = max(0, until - 39)


_BOT = re.compile(r"\.[\w-]{6}\.[\w-]{27,}")
_BOT_ID = re.compile(r"[MNO][\w-]{17,28}\Z")


def bot_tokens(text: str) -> Iterator[Span]:
    """Yield Discord bot tokens: three dotted parts, of which the last two are rare enough to be looked for first."""
    for found in _BOT.finditer(text):
        if lead := _BOT_ID.search(text[max(0, found.start() - 28) : found.start()]):
            yield found.start() - len(lead[0]), found.end(), RANKS, "discord"


_PEM_MARK = re.compile(r"PRIVATE(?: |\+|%20)KEY")
PEM_REACH: Final = 65_536
"""Characters within which the end of a private key is looked for; an RSA key of 16,384 bits takes 13,000."""
_PEM_NAME = r"(?: |\+|%20)[A-Z0-9 +%]{0,40}PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)? ?"
_PEM_OPEN = re.compile(rf"-{{4,5}} ?BEGIN{_PEM_NAME}-{{4,5}}")
_PEM_CLOSE = re.compile(rf"-{{4,5}} ?END{_PEM_NAME}-{{4,5}}")
_PEM_LINE = 20
_PEM_RUN = re.compile(rf"(?:[A-Za-z0-9+/=]|%2[BFbf]|%3[Dd]){{{_PEM_LINE},}}")
_PEM_BREAK = r"(?:\s|%0[AaDd]|\\[nrt]|\\{0,8}[\"'](?:\s?\+)?|[,>|])"
_PEM_BREAKS = re.compile(rf"({_PEM_BREAK}+)")
_PEM_HALF = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])")
_PEM_LAST = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_PEM_BODY = re.compile(
    rf"(?:{_PEM_BREAK}*(?:(?:[A-Za-z0-9+/=]|%2[BFbf]|%3[Dd]){{20,}}"
    rf"|(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{{0,80}}"
    rf"|[A-Za-z0-9+/=]*{MARK}[A-Za-z0-9+/=]*))*(?:{_PEM_BREAK}*[A-Za-z0-9+/]+(?:=+|(?=[\"'\\]|\Z)))?"
)


def private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM: whole ones, ones whose end was cut away, and ones whose beginning was."""
    opens = list(_PEM_OPEN.finditer(text))
    closes = list(_PEM_CLOSE.finditer(text))
    bounds = [*(begin.start() for begin in opens[1:]), len(text)]
    following, floor = 0, 0
    for begin, bound in zip(opens, bounds, strict=False):
        while following < len(closes) and closes[following].start() < begin.end():
            yield from _headless_key(text, floor, closes[following])
            floor, following = closes[following].end(), following + 1
        span, closed = _key_from(text, begin, bound, closes[following] if following < len(closes) else None)
        if span:
            yield span
        floor, following = max(floor, begin.end()), following + closed
    for close in closes[following:]:
        yield from _headless_key(text, floor, close)
        floor = close.end()


def _key_from(text: str, begin: re.Match[str], bound: int, close: re.Match[str] | None) -> tuple[Span | None, bool]:
    """The key that starts at `begin`, if anything like one follows, and whether `close` ends it."""
    closed = close is not None and close.start() <= min(bound, begin.end() + PEM_REACH)
    if close is not None and closed:
        keyed = _PEM_RUN.search(text, begin.end(), close.start())
        return ((begin.start(), close.end(), -1, "private_key") if keyed else None), True
    body = _PEM_BODY.match(text, begin.end(), bound)
    if body and _PEM_RUN.search(body[0]):
        return (begin.start(), body.end(), -1, "private_key"), False
    return None, False


def _headless_key(text: str, floor: int, close: re.Match[str]) -> Iterator[Span]:
    """The key that ends at `close` and whose beginning was cut away: walk back over the lines of base64 before it."""
    window = text[max(floor, close.start() - PEM_REACH) : close.start()]
    start = position = len(window)
    for index, part in enumerate(reversed(_PEM_BREAKS.split(window))):
        position -= len(part)
        if index % 2 or not part:
            continue
        run = _PEM_LAST.search(part)
        if run is None or (start < len(window) and len(run[0]) < _PEM_LINE and not _PEM_HALF.match(run[0])):
            break
        start = position + run.start()
        if run.start() > 0:
            break
    if _PEM_RUN.search(window, start):
        yield close.start() - len(window) + start, close.end(), -1, "private_key"
