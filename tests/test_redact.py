"""Secrets go, look-alikes stay. No secret stands in this file: each is put together when the tests run."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import ConfigError
from memoryd.redact import PLACEHOLDER, Redactor
from memoryd.redact_escapes import REACH
from tests.support.secrets import (
    CUTS,
    DIGITS,
    ESCAPES,
    HEX,
    HOSTILE,
    MIXED,
    ODD,
    SHAPES,
    UPPER,
    WAYS,
    WITHOUT_PREFIX,
    a_pem_key,
    body,
    leaks,
)

REDACTOR = Redactor()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_goes_in_every_way_of_appearing(shape: str, way: str) -> None:
    assert_gone(SHAPES[shape], WAYS[way](SHAPES[shape]))


@pytest.mark.parametrize("writer", ESCAPES)
def test_every_shape_goes_however_it_was_escaped(writer: str) -> None:
    escape, unescape = ESCAPES[writer]
    for secret in SHAPES.values():
        for words in (f"I used {secret}, as you said.", f"PATH=/usr/bin\nVALUE={secret}\n", f"('{secret}');"):
            clean = REDACTOR.clean(escape(words))
            assert not leaks(secret, unescape(clean)), clean
            assert unescape(clean) != words
            assert REDACTOR.clean(clean) == clean


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in WITHOUT_PREFIX])
def test_every_shape_goes_where_another_program_has_cut_it(shape: str, cut: str) -> None:
    assert_gone(SHAPES[shape], CUTS[cut](SHAPES[shape]))


def test_the_table_is_as_long_as_it_has_to_be() -> None:
    assert len(SHAPES) >= 45
    assert len(KEPT) >= 25


def assert_gone(secret: str, text: str) -> None:
    redacted = REDACTOR.redact(text)
    assert not leaks(secret, redacted.text), redacted.text
    assert re.search(r"\[REDACTED_SECRET:[a-z0-9_]+\]", redacted.text)
    assert REDACTOR.redact(redacted.text).text == redacted.text
    assert REDACTOR.contains_secret(text)
    assert not REDACTOR.contains_secret(redacted.text)


PASSWORD = "hunter" + "2"
WORDY = "correct-horse" + "-battery"
CODED = body(40, MIXED + "/+")

ASSIGNMENTS: dict[str, tuple[str, str]] = {
    "environment": (f"FOO_TOKEN={WORDY}", WORDY),
    "export": (f"export X_SECRET={PASSWORD}; make", PASSWORD),
    "quoted export": (f"export DB_PASSWORD='{PASSWORD} {WORDY}'", WORDY),
    "short": ("API_KEY=" + "abc123", "abc123"),
    "number": ("BOT_TOKEN=" + DIGITS, DIGITS),
    "JSON": (json.dumps({"password": PASSWORD}), PASSWORD),
    "JSON with escapes in it": (json.dumps({"password": 'ab"c\\' + WORDY}), WORDY),
    "JSON in JSON": (json.dumps(json.dumps({"password": 'ab"' + WORDY, "x": 1})), WORDY),
    "JSON in JSON in JSON": (json.dumps(json.dumps(json.dumps({"client_secret": 'a"' + WORDY}))), WORDY),
    "command in JSON": (json.dumps({"cmd": f"export A_TOKEN={PASSWORD}\nls"}), PASSWORD),
    "cut JSON": ('{"password": "' + PASSWORD, PASSWORD),
    "number in JSON": ('{"password": ' + DIGITS + "}", DIGITS),
    "YAML": (f"db:\n  password: {WORDY}\n  host: h", WORDY),
    "YAML, quoted": (f"api_key: '{CODED}'", CODED),
    "Python": (f"password = '{PASSWORD}'", PASSWORD),
    "Python, annotated": (f'token: str = "{CODED}"', CODED),
    "Python, bytes": (f"SECRET_KEY = b'{CODED}'", CODED),
    "Python, index": (f'os.environ["API_TOKEN"] = "{CODED}"', CODED),
    "Python, three quotes": (f'password = """{WORDY}"""', WORDY),
    "comparison": (f'if password == "{PASSWORD}":', PASSWORD),
    "PHP": (f"'password' => '{PASSWORD}',", PASSWORD),
    "XML": (f"<password>{PASSWORD}</password>", PASSWORD),
    "flag": (f"mysql --password={PASSWORD} -h x", PASSWORD),
    "flag with a space": (f"tool --token {CODED} --x", CODED),
    "flag in a list": (json.dumps(["tool", "--password", PASSWORD]), PASSWORD),
    "name and value": (json.dumps({"name": "DB_PASSWORD", "value": PASSWORD}), PASSWORD),
    "name and value in YAML": (f"- name: DB_PASSWORD\n  value: {PASSWORD}\n", PASSWORD),
    "query": (f"https://h/x?access_token={WORDY}&y=1", WORDY),
    "encoded query": (f"https%3A%2F%2Fh%2F%3Fapi_key%3D{CODED[:20]}%26y", CODED[:20]),
    "connection string": (f"Server=x;Pwd={PASSWORD};Timeout=1", PASSWORD),
    "Azure": (f"AccountName=n;AccountKey={CODED}==;EndpointSuffix=s", CODED),
    "npmrc": (f"//registry.example.org/:_authToken={WORDY}", WORDY),
    "npmrc, basic": ("_auth=" + "dXNlcjpwYXNzd29yZDE=", "dXNlcjpwYXNzd29yZDE"),
    "docker config": ('{"auths": {"h": {"auth": "' + "dXNlcjpwYXNzd29yZDE=" + '"}}}', "dXNlcjpwYXNzd29yZDE"),
    "netrc": (f"machine h login u password {PASSWORD}", PASSWORD),
    "netrc over lines": (f"machine h\n  login u\n  password {PASSWORD}\n", PASSWORD),
    "header": (f"Authorization: Bearer {PASSWORD}", PASSWORD),
    "header, encoded": ("Authorization: Basic " + "dTpw", "dTpw"),
    "header in JSON": (json.dumps({"Authorization": f"Bearer {CODED}"}), CODED),
    "header in JSON in JSON": (json.dumps(json.dumps({"authorization": f"token {CODED}"})), CODED),
    "header of curl": (f"curl -H 'Authorization: Bearer {WORDY}' https://h", WORDY),
    "bearer alone": (f"send Bearer {CODED} with it", CODED),
    "header without a scheme": (f"Authorization: {CODED}", CODED),
    "key header": (f"X-Api-Key: {CODED}", CODED),
    "cookie": (f"Cookie: sid={WORDY}; theme=dark", WORDY),
    "set-cookie in JSON": (json.dumps({"Set-Cookie": f"sid={WORDY}; Path=/"}), WORDY),
    "userinfo": ("postgres://u:" + PASSWORD + "@h/db", PASSWORD),
    "userinfo, one letter": ("postgres://u:" + "Z" + "@h", ":Z@"),
    "userinfo with @": ("https://u:" + PASSWORD + "@tail" + "@h/x", "tail"),
    "userinfo without user": ("redis://:" + PASSWORD + "@h:6379/0", PASSWORD),
    "userinfo in PHP JSON": ('"https:\\/\\/u:' + PASSWORD + '@h"', PASSWORD),
    "userinfo, encoded": ("url=https%3A%2F%2Fu%3A" + PASSWORD + "%40h", PASSWORD),
    "userinfo that is a token": (f"https://{body(30)}@github.com/o/r", body(30)),
    "curl user": (f"curl -s -u admin:{PASSWORD} https://h", PASSWORD),
    "sshpass": (f"sshpass -p {PASSWORD} ssh h", PASSWORD),
    "slack webhook": ("https://hooks.slack" + ".com/services/T0/B0/" + body(24), body(24)),
    "discord webhook": ("https://discord.com/api/webhooks/" + DIGITS + "/" + body(60), body(60)),
    "azure signature": (f"https://h/c?sv=1&sig={CODED}", CODED),
    "aws prompt": (f"AWS Secret Access Key [None]: {CODED}", CODED),
    "aws pair": ("AKIA" + body(16, UPPER) + f",{CODED}\n", CODED),
    "aws pair in JSON": (json.dumps({"a": f"id\n{CODED}\n" + "AKIA" + body(16, UPPER)}), CODED),
    "markdown": (f"**Password:** {PASSWORD}", PASSWORD),
    "shouted key": (f"SENTRY_KEY={body(32)}", body(32)),
    "putty": ("Private-Lines: 2\n" + body(64) + "\n" + body(40) + "\n", body(40)),
}  # fmt: skip


@pytest.mark.parametrize("case", ASSIGNMENTS)
def test_a_value_goes_because_of_its_name(case: str) -> None:
    text, secret = ASSIGNMENTS[case]
    redacted = REDACTOR.redact(text)
    assert secret not in redacted.text
    assert redacted.kinds
    assert REDACTOR.redact(redacted.text).text == redacted.text


@pytest.mark.parametrize("writer", [writer for writer in ESCAPES if "nothing but" not in writer])
def test_a_value_goes_because_of_its_name_however_it_was_escaped(writer: str) -> None:
    escape, unescape = ESCAPES[writer]
    for text, secret in ASSIGNMENTS.values():
        assert secret not in unescape(REDACTOR.clean(escape(text)))


def test_what_was_found_behind_escapes_goes_without_a_piece_of_one() -> None:
    token, escape = SHAPES["github classic"], ESCAPES["a JSON of nothing but escapes"][0]
    text = '{"a": "x' + escape(f" {token} ") + 'y", "b": "\\u0041 \\u005c \\\\"}'
    assert REDACTOR.clean(text) == '{"a": "x\\u0020[REDACTED_SECRET:github]\\u0020y", "b": "\\u0041 \\u005c \\\\"}'


KEPT = {
    "sha-1": "commit " + body(40, HEX),
    "sha-256": "sha256:" + body(64, HEX),
    "sha-256 alone": body(64, HEX),
    "md5": body(32, HEX) + "  file",
    "uuid": "thread 01a226ab-5fe7-707c-80dd-7a6d93907104",
    "integrity": '"integrity": "sha512-' + body(86, MIXED + "/+") + '=="',
    "task-force": "the task-force and the risk-averse desk-sharing",
    "css": "sk-spinner-wave-container-animation",
    "placeholder": "OPENAI_API_KEY=sk-...",
    "placeholder in words": "use sk-proj-your-api-key-here",
    "counts": "max_tokens=4096 total_tokens: 150000 tokens: 12,345",
    "counts in JSON": '{"input_tokens": 1234, "token_count": "1,024", "tokens": 10}',
    "token usage": "tokens: input=1234 output=567",
    "type": "def login(user: str, password: str) -> Token:",
    "optional type": "password: Optional[str] = None",
    "keyword": "connect(user=user, password=password, token=token)",
    "same name": "self.password = password\napi_key=api_key\n",
    "snake case": 'username, password = proxy_auth\n{"old_secret": keep_old_secret_for_24_hours, "x": 1}',
    "attribute": "password = settings.database.password",
    "call": "token = get_token(request)",
    "environ": 'API_KEY = os.environ["OPENAI_API_KEY"]',
    "variable": "export TOKEN=$OTHER_TOKEN PASSWORD=${DB_PASSWORD}",
    "template": "token: ${{ secrets.GITHUB_TOKEN }}",
    "format": 'f"Bearer {token}" and "password": "{password}"',
    "angle": "password=<your password>",
    "masked": "password: ********",
    "file": "DB_PASSWORD_FILE=/run/secrets/db",
    "env name": 'api_key_env = "OPENAI_API_KEY"',
    "tokenizer": 'tokenizer = "cl100k_base"',
    "pwd": "PWD=/home/u/project OLDPWD=/tmp",
    "pass": "PASS: tests/test_x.py 12 pass: 34",
    "prose": "Password: required. The secret: none. A token is needed; the key: patience.",
    "question": "how do I reset my password and where does the token go?",
    "bearer in prose": "Authorization: Bearer token, bearer authentication",
    "secret name": "secretName: db-credentials-2",
    "address": "http://localhost:8080/@scope/package and git@github.com:o/r.git",
    "userinfo variable": "postgres://$USER:$PASSWORD@h/db",
    "docker user": "docker run -u 1000:1000 image",
    "public key": "-----BEGIN PUBLIC KEY-----\n" + body(64) + "\n-----END PUBLIC KEY-----",
    "pem in prose": "look for '-----BEGIN PRIVATE" + " KEY-----' in the file",
    "cache key": "CACHE_KEY=" + body(64, HEX),
    "snake": "task_test_helper_function_name_is_long work_live_view",
    "npm variable": "npm_config_registry and hf_hub_download",
    "workflow": "pypi-publish-to-the-test-registry-workflow",
    "empty": '{"password": "", "token": null, "secret": true}',
    "fetch": 'fetch(u, {credentials: "same-origin"})',
    "arn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCd12",
    "prompt": "getpass.getpass('Password: ', stream=None)",
    "version": "1.2.3-beta+build.456 v18.17.0",
    "git diff": f"diff --git a/src/token.py b/src/token.py\nindex {body(11, HEX)}..{body(10, HEX)} 100644\n",
    "npm lock": '"resolved": "https://registry.npmjs.org/js-tokens/-/js-tokens-4.0.0.tgz",\n"integrity": "sha512-'
    + body(86, MIXED + "/+") + '=="',
    "go sum": "golang.org/x/crypto v0.21.0 h1:" + body(43, MIXED + "/+") + "=",
    "pip hash": "httpx==0.28.1 \\\n    --hash=sha256:" + body(64, HEX),
    "docker digest": "FROM python:3.11@sha256:" + body(64, HEX),
    "hex colours": "color: #1a2b3c; background: #aabbccdd; --token-color: #ff8800;",
    "long path": "/home/u/secret-garden/node_modules/.pnpm/@babel+core@7.24.0/node_modules/@babel/core/lib/index.js",
    "css classes": 'class="token keyword password-input sk-circle sk-fading-circle pk_button_primary"',
    "file of a build": "dist/assets/index-B3xK9dQw.js dist/main.3f2a9c1b8d7e.css",
    "certificate": "-----BEGIN CERTIFICATE-----\n" + body(64) + "\n-----END CERTIFICATE-----",
    "ssh public key": "ssh-rsa AAAAB3NzaC1yc2E" + body(200, MIXED + "/+") + " u@h",
    "pgp public key": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + body(64) + "\n-----END PGP PUBLIC KEY BLOCK-----",
    "fingerprint": "SHA256:" + body(43, MIXED + "/+") + " u@h (ED25519)",
    "nix store": "/nix/store/" + body(32, "0123456789abcdfghijklmnpqrsvwxyz") + "-python3-3.11.7/bin/python3",
    "etag": 'ETag: W/"5f3759df-86b1c0de"',
    "pytest node": "tests/test_auth.py::test_token_is_refreshed[expired-401] PASSED",
    "traceback": 'File "/srv/app/auth/tokens.py", line 42, in refresh_token',
    "sql": "SELECT token_id, password_hash FROM users WHERE api_key_id = ?",
    "markdown link": "[how to reset a password](https://example.org/docs/reset-password#step-2)",
    "log line": "2026-01-02T03:04:05Z INFO token refreshed in 123ms for user 4711",
    "env without": "AWS_REGION=eu-west-1 NODE_ENV=production KEYBOARD=de TOKENIZERS_PARALLELISM=false",
    "mail address": "write to key-account@example.org or token.team@example.org",
    "typescript": "interface Props { token: string; password?: string; onSecret: (secret: Secret) => void }",
    "kubernetes": "secretKeyRef:\n  name: db-credentials\n  key: password",
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_look_alikes_stay(case: str) -> None:
    assert REDACTOR.redact(KEPT[case]).text == KEPT[case]
    assert not REDACTOR.contains_secret(KEPT[case])


@pytest.mark.parametrize("writer", ESCAPES)
def test_look_alikes_stay_however_they_were_escaped(writer: str) -> None:
    for text in KEPT.values():
        escaped = ESCAPES[writer][0](text)
        assert REDACTOR.clean(escaped) == escaped


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_private_key_goes_whole_however_deep_it_is_escaped(label: str, depth: int) -> None:
    text = f"before\n{a_pem_key(label)}\nafter"
    expected = "before\n[REDACTED_SECRET:private_key]\nafter"
    for _ in range(depth):
        text, expected = json.dumps(text), json.dumps(expected)
    assert REDACTOR.clean(text) == expected


def test_a_private_key_without_its_end_goes_up_to_where_it_was_cut() -> None:
    key = a_pem_key()
    for cut in (key[:200], key[:200] + "\n[... 20 lines omitted ...]\nprose after", json.dumps(key[:222])):
        redacted = REDACTOR.clean(cut)
        assert not leaks(MIXED, redacted), redacted
    assert "prose after" in REDACTOR.clean(key[:200] + "\n[... 20 lines omitted ...]\nprose after")


def test_a_private_key_without_its_beginning_goes_too() -> None:
    key = a_pem_key()
    for tail in ("text\n" + key[150:], "x …9 tokens truncated…" + key[150:], json.dumps("text\n" + key[150:])):
        redacted = REDACTOR.clean(tail)
        assert not leaks(MIXED, redacted), redacted
    assert REDACTOR.clean("text\n" + key[150:]).startswith("text\n")


def test_several_private_keys_leave_what_stands_between_them() -> None:
    key = a_pem_key()
    tail = key[key.index("\n", 150) :]
    text = f"{tail}\nA\n{key}\nB\n{key[:200]}\nsome words here\n{key}\nC"
    redacted = REDACTOR.redact(text)
    assert re.findall(r"^(?:[ABC]|some words here)$", redacted.text, re.MULTILINE) == ["A", "B", "some words here", "C"]
    assert not leaks(MIXED, redacted.text)
    assert redacted.kinds == {"private_key": 4}


def test_redacted_json_is_still_json() -> None:
    record = {"password": 'a"b\\', "env": "A_TOKEN=x1y2z3\nB=2", "url": "postgres://u:" + "p@h/db", "n": [1, None]}
    inner = json.dumps(record)
    for text in (inner, json.dumps(inner)):
        assert json.loads(REDACTOR.clean(text))
    assert json.loads(REDACTOR.clean(inner))["n"] == [1, None]


def test_a_known_shape_names_the_kind_even_behind_a_name() -> None:
    redacted = REDACTOR.redact("GITHUB_TOKEN=" + SHAPES["github classic"] + " and DB_PASSWORD=" + PASSWORD)
    assert redacted.text == "GITHUB_TOKEN=[REDACTED_SECRET:github] and DB_PASSWORD=[REDACTED_SECRET:password]"
    assert redacted.kinds == {"github": 1, "password": 1}


def test_a_secret_that_another_hid_goes_too() -> None:
    text = SHAPES["aws id"] + SHAPES["openai"]
    assert not leaks(SHAPES["openai"], REDACTOR.clean(text))


def test_a_users_pattern_goes_but_never_matches_a_replacement() -> None:
    redactor = Redactor([r"ACME-\d+", r"SECRET", r"x*"])
    redacted = redactor.redact("ACME-12 and FOO_TOKEN=" + WORDY + " SECRET")
    assert redacted.text == (
        "[REDACTED_SECRET:custom] and FOO_TOKEN=[REDACTED_SECRET:token] [REDACTED_SECRET:custom]"
    )  # fmt: skip
    assert redactor.redact(redacted.text).text == redacted.text
    assert redactor.contains_secret("ACME-1")


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(?P<x>a)(?P<x>b)", "a{99999999999999999999}"])
def test_a_pattern_that_is_no_regular_expression_is_named(pattern: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(pattern))):
        Redactor([pattern])


def test_a_letter_that_grows_when_folded_does_not_shift_what_goes() -> None:
    assert REDACTOR.clean("İİİ DB_PASSWORD=" + PASSWORD + " ok") == "İİİ DB_PASSWORD=[REDACTED_SECRET:password] ok"


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_input_of_a_megabyte_comes_back(piece: str) -> None:
    redacted = REDACTOR.redact(piece * (1_000_000 // len(piece)))
    assert PLACEHOLDER.sub("", redacted.text).count(piece) <= 1_000_000 // len(piece)


@pytest.mark.parametrize("piece", ODD)
def test_odd_input_comes_back(piece: str) -> None:
    once = REDACTOR.clean(piece * 5_000)
    assert REDACTOR.clean(once) == once


FRAGMENTS = st.sampled_from(
    [
        *SHAPES.values(),
        *(text for text, _ in ASSIGNMENTS.values()),
        *HOSTILE,
        *KEPT.values(),
        a_pem_key(),
        "\n",
        '"',
        "\\n",
        " ",
    ]
)


@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=12)), max_size=8).map("".join))
def test_redacting_never_raises_and_redacting_twice_changes_nothing(text: str) -> None:
    once = REDACTOR.redact(text)
    twice = REDACTOR.redact(once.text)
    assert twice.text == once.text
    assert twice.kinds == {}
    assert REDACTOR.contains_secret(text) == bool(once.kinds)
    assert len(PLACEHOLDER.findall(once.text)) >= len(PLACEHOLDER.findall(text))


@pytest.mark.parametrize("distance", [0, 100, REACH - 60, REACH, 3 * REACH])
def test_secrets_behind_escapes_are_known_wherever_in_a_long_text_they_stand(distance: int) -> None:
    """Only the lines around an escape are looked at once more: the same is found there as in a text of those alone."""
    escaped, value = 'the "api_token\\u0022: \\u0022', body(24, MIXED)
    filler = "a line of a log without anything\n" * (distance // 33)
    text = f"{filler}{escaped}{value}\\u0022\n{filler}&lt;b&gt;\n{filler}{escaped}{value}\\u0022\n{filler}"
    assert value not in Redactor().clean(text)
    assert Redactor().redact(text).kinds == {"token": 2}
