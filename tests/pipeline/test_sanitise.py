"""What is taken out of a session before anything else looks at it."""

import html
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.pipeline.sanitise import BASE64_MARK, sanitise
from memoryd.sources.items import Item, ItemKind
from memoryd.text import MARKER_CLOSE, MARKER_OPEN

HOME = Path("/home/u/.memoryd")


def an_item(text: str, kind: ItemKind = ItemKind.HUMAN, ordinal: int = 0, **more: object) -> Item:
    return Item(kind, text, ordinal, **more)  # type: ignore[arg-type]  # keyword arguments of a factory


def a_call(text: str, call_id: str | None = "c1", tool: str = "shell", cwd: str | None = None) -> Item:
    return an_item(text, ItemKind.TOOL_CALL, 1, call_id=call_id, tool=tool, cwd=cwd)


def an_output(text: str, call_id: str | None = "c1", exit_code: int | None = None) -> Item:
    return an_item(text, ItemKind.TOOL_OUTPUT, 2, call_id=call_id, exit_code=exit_code)


def cleaned(
    items: Sequence[Item], *, tags: Sequence[str] = ("private",), home: Path = HOME
) -> tuple[list[str], dict[str, int]]:
    dropped: Counter[str] = Counter()
    kept = [item.text for item in sanitise(items, private_tags=tags, home=home, dropped=dropped)]
    return kept, dict(+dropped)


def cleaned_text(text: str, *, tags: Sequence[str] = ("private",)) -> str:
    kept, _ = cleaned([an_item(text)], tags=tags)
    return kept[0] if kept else ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <private>X</private> b", "a  b"),
        ("a<private>X</private>b", "a b"),
        ("a <PRIVATE>X</Private > b", "a  b"),
        ('a <private why="x > y" n=1>X</private> b', "a  b"),
        ("a <private\n  why=x\n>X</private> b", "a  b"),
        ("a <private>X<private>Y</private>Z</private> b", "a  b"),
        ("a <private>X</private> b <private>Y</private> c", "a  b  c"),
        ("a <private>X and all the rest", "a "),
        ("a <private>X<private>Y</private> still hidden", "a "),
        ("a <private X never ends", "a "),
        ("a <private", "a "),
        ("a <private/> b", "a  b"),
        ("a </private> b", "a  b"),
        ("a\n```\n<private>X</private>\n```\nb", "a\n```\n\n```\nb"),
        ("a `<private>` X", "a `"),
        ("a &lt;private&gt;X&lt;/private&gt; b", "a  b"),
        ('a &lt;private why="1"&gt;X&lt;/private&gt; b', "a  b"),
        ("a \\u003cprivate\\u003eX\\u003c/private\\u003e b", "a  b"),
        ('{"a": "<private>X<\\/private> b"}', '{"a": " b"}'),
        ("a <pri<private>X</private>vate>Y</private> b", "a <pri vate>Y b"),
        ("a &#60;private&#62;X&#60;/private&#62; b", "a  b"),
        ("a &#x3c;private&#x3E;X&#x3C;&#47;private&#x3e; b", "a  b"),
        ("a &amp;amp;lt;private&amp;amp;gt;X&amp;amp;lt;/private&amp;amp;gt; b", "a  b"),
        ("a %3Cprivate%3EX%3C%2Fprivate%3E b", "a  b"),
        ("a \\\\u003cprivate\\\\u003eX\\\\u003c/private\\\\u003e b", "a  b"),
        ("a \\x3cprivate\\x3eX\\x3c\\x2fprivate\\x3e b", "a  b"),
        ("a \\<private\\>X\\</private\\> b", "a  b"),
        ("a \\u{3c}private\\u{3E}X\\u{003c}\\u{2f}private\\u{3e} b", "a  b"),
        ("a \\074private\\076X\\074\\057private\\076 b", "a  b"),
        ("a &ltprivate&gtX&lt/private&gt b", "a  b"),
        ("a &#60private&#62X&#60&#47private&#62 b", "a  b"),
        ("a < private >X< / private > b", "a  b"),
        ("a <private/>X</private> b", "a  b"),
        ("a <pri\u200bvate>X</private> b", "a  b"),
        ("a <\u2060private\ufeff>X</\u202eprivate> b", "a  b"),
        ("a <private\0>X</\x08private> b", "a  b"),
        ("a <pri\u200dvate\xad>X</pri\u200cvate> b", "a  b"),
        ("a ＜private＞X＜／private＞ b", "a  b"),
        ("a \u2764\ufe0f b", "a \u2764\ufe0f b"),
        ("a <private/> b <private>X</private> c", "a  b  c"),
        ("a <private><!-- </privat --> X", "a "),
        ("~~~\n<private>\n~~~\nX", "~~~\n"),
        ("a <private>X</private", "a "),
        ("#include <private/foo.h> and <privateer> stay", "#include <private/foo.h> and <privateer> stay"),
        ("<private-x>stays</private-x>", "<private-x>stays</private-x>"),
    ],
)
def test_private_spans_go_and_what_is_not_closed_goes_to_the_end(text: str, expected: str) -> None:
    assert cleaned_text(text) == expected


def test_tags_of_other_names_count_when_configured_and_do_not_close_each_other() -> None:
    text = "a <no.log>X<private>Y</no.log>Z</private> b <nozlog>stays</nozlog>"
    assert cleaned_text(text, tags=["private", "no.log"]) == "a  b <nozlog>stays</nozlog>"
    assert cleaned_text("<private>X</no.log>Y", tags=["private", "no.log"]) == ""
    assert cleaned_text("<private>stays</private>", tags=[]) == "<private>stays</private>"


def test_an_open_private_span_hides_the_other_parts_of_its_message_and_no_other() -> None:
    parts = [an_item("a <private>X", ordinal=4), an_item("part two", ordinal=4), an_item("next", ordinal=5)]
    kept, dropped = cleaned(parts)
    assert kept == ["a ", "next"]
    assert dropped == {"private": 2}


@pytest.mark.parametrize("kind", [kind for kind in ItemKind if kind is not ItemKind.TOOL_CALL])
@pytest.mark.parametrize("part", ItemKind)
def test_in_every_role_an_open_span_hides_every_later_part_of_its_message(kind: ItemKind, part: ItemKind) -> None:
    items = [an_item("a <private>X", kind, 4), an_item("part two</private> X", part, 4), an_item("next", part, 5)]
    kept, dropped = cleaned(items)
    assert kept == ["a ", "next"]
    assert dropped == {"private": 2}


def test_what_a_program_printed_is_no_part_of_the_call_that_spoke_of_a_tag() -> None:
    items = [
        an_item("rg '<private>' notes", ItemKind.TOOL_CALL, 4, call_id="c"),
        an_item("more of the call", ItemKind.TOOL_CALL, 4, call_id="d"),
        an_item("one line", ItemKind.TOOL_OUTPUT, 4, call_id="c"),
    ]
    assert cleaned(items)[0] == ["rg '", "one line"]


def test_arguments_of_calls_lose_their_private_spans_however_they_are_escaped() -> None:
    text = json.dumps(
        {"text": "a <private>X</private> b", "inner": json.dumps({"html": "&lt;private&gt;X&lt;/private&gt;"})}
    )
    for _ in range(3):
        kept, _dropped = cleaned([a_call(text)])
        assert "X" not in kept[0]
        assert '"inner' in kept[0].replace("\\", "")
        text = json.dumps(text)


def test_a_message_that_was_only_private_is_dropped_as_blank() -> None:
    assert cleaned([an_item("<private>X</private>")]) == ([], {"private": 1, "blank": 1})


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("Skill", 'Skill {"skill":"memoryd"}'),
        ("activate_skill", 'activate_skill {"name":"memoryd"}'),
        ("ToolSearch", 'ToolSearch {"query":"select:mcp__memoryd__search"}'),
        ("tool_search", "memoryd search"),
    ],
)
def test_loading_the_skill_or_looking_for_the_tools_is_memoryds_own(tool: str, text: str) -> None:
    items = [a_call(text, tool=tool), an_output("how to search")]
    assert cleaned(items) == ([], {"own_call": 1, "own_output": 1})
    assert cleaned([a_call(f"{tool} other", tool=tool), an_output("x")])[1] == {}


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("! memoryd search x", ["remembered", "and on stderr"]),
        ("<user_shell_command>\n<command>\nmemoryd search x\n</command>\n<result>\nremembered\n</result>", []),
        ("I ran the following shell command:\n```sh\nmemoryd search x\n```\n\nThis produced:\nremembered", []),
        ("! cat ~/.memoryd/memories/MEMORY.md", ["remembered"]),
    ],
)
def test_what_a_person_ran_of_memoryd_in_the_session_goes_with_what_it_printed(typed: str, printed: list[str]) -> None:
    rows = [an_item(text, ItemKind.HARNESS_CONTEXT) for text in (typed, *printed)]
    dropped = {"own_call": 1} | ({"own_output": len(printed)} if printed else {})
    assert cleaned([*rows, an_item("next", ordinal=1)]) == (["next"], dropped)
    other = [an_item(text, ItemKind.HARNESS_CONTEXT) for text in ("! ls", "memoryd", "<environment_context>x")]
    assert cleaned(other) == (["! ls", "memoryd", "<environment_context>x"], {})


def test_an_output_that_names_memoryds_tool_goes_also_without_its_call() -> None:
    answer = an_item("remembered", ItemKind.TOOL_OUTPUT, 2, call_id="c9", tool="mcp__memoryd__search")
    assert cleaned([answer]) == ([], {"own_output": 1})


@pytest.mark.parametrize(
    "piece",
    [
        *("<private>", "<private ", "</private>", "<private>x</private>", "<private", "&lt;private ", "<private/>"),
        *("<private/></private>", "%3Cprivate%3E", r"\\u003cprivate ", "&amp;amp;amp;lt;private&gt;", "<private a=<"),
    ],
)
def test_ten_thousand_tags_take_linear_time(piece: str) -> None:
    kept, _ = cleaned([an_item("before " + piece * 10_000)])
    assert all("private" not in text for text in kept)


BLOCK = f"{MARKER_OPEN}\nv1\nlearned things\n{MARKER_CLOSE}"


@pytest.mark.parametrize(
    "block",
    [
        BLOCK,
        BLOCK.upper(),
        html.escape(BLOCK),
        html.escape(html.escape(BLOCK)),
        html.escape(html.escape(html.escape(BLOCK))),
        BLOCK.replace("<", "&#60;").replace(">", "&#62;"),
        json.dumps(json.dumps(BLOCK)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e"))[1:-1],
        json.dumps(BLOCK)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e"),
        f"{MARKER_OPEN}it quotes {BLOCK} inside{MARKER_CLOSE}",
        f"{MARKER_OPEN}it quotes {MARKER_OPEN} inside{MARKER_CLOSE}",
    ],
)
def test_injected_memory_goes_and_the_words_around_it_stay(block: str) -> None:
    kept, dropped = cleaned([an_item(f"before\n{block}\nafter")])
    assert kept == ["before\n\nafter"]
    assert dropped == {"memory_block": 1}


def test_memory_that_is_not_closed_goes_to_the_end() -> None:
    for text in (
        f"mine\n{MARKER_OPEN}\nv1 learned",
        f"mine\n{html.escape(MARKER_OPEN)}\nv1 learned",
        "mine\n<memoryd_memory",
    ):
        assert cleaned([an_item(text)]) == (["mine\n"], {"memory_block": 1})


def test_two_blocks_leave_the_words_between_them() -> None:
    assert cleaned_text(f"a {BLOCK} b {BLOCK} c") == "a  b  c"
    assert cleaned_text(f"a {BLOCK} b {MARKER_OPEN} c") == "a  b "
    assert cleaned_text(f"a {MARKER_CLOSE} b") == "a  b"


OWN_COMMANDS = [
    "python -X utf8 -m memoryd.control.main search x",
    "uv tool run memoryd search x",
    'PATH="$PATH:$HOME/.local/bin" memoryd search x',
    "nice -n 10 memoryd search x",
    "timeout -k 5 10s memoryd read MEMORY.md",
    "poetry run memoryd why x",
    "ssh build 'memoryd search x'",
    "docker exec -it box memoryd --home /x search y",
    "$(command -v memoryd) search x",
    "`which memoryd` search x",
    'm=memoryd; $m search "x"',
    'M=$(which memoryd) && "$M" search x',
    "alias ms='memoryd search'; ms x",
    "eval 'memoryd search x'",
    "echo 'memoryd search x' | sh",
    "find . -exec memoryd search {} +",
    "bash <<'E'\n2>/dev/null memoryd search x\nE",
    "make -C x && \\\n memoryd search \\\n x",
    "python -c \"import subprocess; subprocess.run(['memoryd', 'search', 'x'])\"",
    "python -c 'from memoryd.control.main import main; main([\"search\"])'",
    "npx @modelcontextprotocol/inspector --cli memoryd mcp --method tools/list",
    "cd ~ && cat .memoryd/config.toml",
    "cat ~/.mem*/memories/MEMORY.md",
    "cat ~/.memory?/memories/MEMORY.md",
    "memoryd search uv",
    "memoryd search --any 'ECONNRESET' --context 2 | head",
    "if memoryd search x; then echo y; fi",
    "! memoryd search x",
    "for w in a b; do memoryd search $w; done",
    "echo x | xargs -n1 memoryd search",
    '"$HOME/.local/bin/memoryd" read MEMORY.md',
    "'/opt/x/bin/memoryd' list",
    "${VENV}/bin/memoryd note x",
    "python3 -P -m memoryd.control.main search x",
    ".venv/bin/python -m memoryd.control.main --home /x why y",
    "uvx --from ./dist/memoryd.whl memoryd search x",
    "const r = await tools.mcp__memoryd__search({query: 'x'})",
    "await tools['mcp__memoryd__read']({path: 'MEMORY.md'})",
    'use_mcp_tool {"server_name": "memoryd", "tool_name": "search"}',
    'call {"server":"memoryd","tool":"why"}',
    'call {"serverName":"memoryd","toolName":"search"}',
    'call {"server_id":"user-memoryd"}',
    'call {"namespace":"mcp__memoryd","name":"search"}',
    'call {"name":"memoryd__search","arguments":{}}',
    'call {"tool":"mcp__memoryd__search"}',
    'call {"tool_name": "memoryd.read"}',
    "const r = await mcp.memoryd.search({query: 'x'})",
    "codemode.memoryd_search({})",
    "tools['memoryd.why']({})",
    "cat ~/.claude/skills/memoryd/SKILL.md",
    'Read {"file_path":"/home/u/.codex/skills/memoryd/SKILL.md"}',
    "memoryd",
    "cd /x && memoryd recall",
    "sudo -n true; memoryd status --json",
    "/usr/local/bin/memoryd why x",
    "~/.local/bin/memoryd why x",
    "python3 -m memoryd status",
    "uv run memoryd status",
    "MEMORYD_HOME=/x memoryd sync",
    "timeout 5 memoryd sync",
    "bash -lc 'memoryd search x'",
    "echo $(memoryd recall)",
    "true | memoryd note x",
    '{"cmd": "memoryd search x"}',
    "cat /home/u/.memoryd/memories/MEMORY.md",
    "cat ~/.memoryd/memories/MEMORY.md",
    "ls $HOME/.memoryd",
    "ls ${HOME}/.memoryd",
    "ls ~u/.memoryd",
    'rg uv "$MEMORYD_HOME/memories"',
    "cat ${MEMORYD_HOME}/x",
    "cd /home/u; cat .memoryd/memories/MEMORY.md",
    'cat "$HOME"/.memoryd/memories/MEMORY.md',
    "cat '/home/u'/.memoryd/memories/MEMORY.md",
    "cat /home//u/./.memoryd/memories/MEMORY.md",
    "cat /home/u/projects/../.memoryd/memories/MEMORY.md",
    "cat /home/u/a/b/../../.memoryd/memories/MEMORY.md",
    r"cat /home/u/\.memoryd/memories/MEMORY.md",
    r'{"file_path": "\/home\/u\/.memoryd\/memories\/MEMORY.md"}',
    '{"file_path":"/home/u/.memoryd/memories/MEMORY.md","limit":20}',
    "rg -n uv ~/.memoryd",
    "sed -n 1,20p ../.memoryd/memories/memory_summary.md",
    "sqlite3 file:///home/u/.memoryd/ledger.sqlite3 .dump",
]
OTHER_COMMANDS = [
    "cd memoryd && ls",
    "rg mcp__memoryd__search docs",
    "pip install memoryd[mcp]",
    "python -m pytest tests/memoryd",
    "ls skills/memoryd-fork",
    'call {"server":"shop","tool":"search","query":"memoryd"}',
    'call {"name":"memoryd-dev__search"}',
    "memoryd.recall.ranking.order({})",
    'echo "memoryd is fine"',
    'call {"server":"memoryd-dev","tool":"why"}',
    "pytest tests/memoryd",
    "grep -r memoryd README.md",
    'rg "memoryd" src',
    "git clone https://example.org/memoryd.git",
    "vim memoryd/text.py",
    "systemctl --user status memoryd-dev",
    "ls /home/u/.memoryd-backup",
    "cat ~/notes/.memorydx",
    "memorydx",
]


@pytest.mark.parametrize("command", OWN_COMMANDS)
def test_a_call_of_memoryd_goes_with_its_output(command: str) -> None:
    items = [a_call(command), an_output("the other's", "c2"), an_output("learned things"), an_item("next", ordinal=3)]
    assert cleaned(items) == (["the other's", "next"], {"own_call": 1, "own_output": 1})


def test_what_memoryd_wrote_to_a_file_goes_with_the_calls_that_read_it() -> None:
    items = [
        a_call("memoryd search x > /tmp/found.txt 2>/dev/null", "c1"),
        an_item("", ItemKind.TOOL_OUTPUT, 2, call_id="c1", exit_code=0),
        a_call("cat /tmp/found.txt", "c2"),
        an_item("remembered", ItemKind.TOOL_OUTPUT, 4, call_id="c2"),
        a_call("cat /tmp/found.txt.old", "c3"),
        an_item("the project's", ItemKind.TOOL_OUTPUT, 6, call_id="c3"),
    ]
    assert cleaned(items)[0] == ["cat /tmp/found.txt.old", "the project's"]


@pytest.mark.parametrize(
    ("started", "asked"),
    [
        ("Command running in background with ID: bash_1", 'BashOutput {"bash_id":"bash_1"}'),
        ("Process running with session ID 5\nOutput:\n", 'write_stdin {"session_id":5,"chars":""}'),
    ],
)
def test_what_memoryd_goes_on_to_print_goes_with_the_calls_that_ask_for_it(started: str, asked: str) -> None:
    items = [
        a_call("memoryd search x", "c1"),
        an_item(started, ItemKind.TOOL_OUTPUT, 2, call_id="c1"),
        a_call(asked, "c2"),
        an_item("remembered", ItemKind.TOOL_OUTPUT, 4, call_id="c2"),
        a_call(asked.replace("_1", "_2").replace(":5", ":51"), "c3"),
        an_item("of a build", ItemKind.TOOL_OUTPUT, 6, call_id="c3"),
    ]
    assert cleaned(items)[0] == [asked.replace("_1", "_2").replace(":5", ":51"), "of a build"]


def test_another_name_that_memoryd_was_given_is_known_in_later_calls() -> None:
    items = [
        a_call("alias ask=/opt/bin/memoryd", "c1"),
        a_call("ask search x | head", "c2"),
        an_item("remembered", ItemKind.TOOL_OUTPUT, 4, call_id="c2"),
        a_call("grep ask src", "c3"),
        an_item("the project's", ItemKind.TOOL_OUTPUT, 6, call_id="c3"),
    ]
    assert cleaned(items)[0][-2:] == ["grep ask src", "the project's"]
    assert "remembered" not in cleaned(items)[0]


@pytest.mark.parametrize("tool", ["search", "read", "list", "why", "note", "mcp__shop__search", "mcp__notes__read"])
def test_tools_of_others_that_bear_the_names_of_memoryds_stay(tool: str) -> None:
    items = [
        an_item(f'{tool} {{"query":"x"}}', ItemKind.TOOL_CALL, 1, call_id="c1", tool=tool),
        an_item("an answer", ItemKind.TOOL_OUTPUT, 2, call_id="c1", tool=tool),
    ]
    assert cleaned(items)[0] == [items[0].text, "an answer"]


def test_what_a_person_says_around_calls_of_memoryd_stays() -> None:
    items = [
        an_item("run memoryd search tabs, then tell me", ItemKind.HUMAN, 1),
        a_call("memoryd search tabs", "c1"),
        an_item("remembered", ItemKind.TOOL_OUTPUT, 3, call_id="c1"),
        an_item("no: use spaces", ItemKind.HUMAN, 4),
    ]
    assert cleaned(items)[0] == ["run memoryd search tabs, then tell me", "no: use spaces"]


@pytest.mark.parametrize("command", OTHER_COMMANDS)
def test_a_call_that_only_speaks_of_memoryd_stays(command: str) -> None:
    assert cleaned([a_call(command), an_output("out")]) == ([command, "out"], {})


@pytest.mark.parametrize(
    "tool",
    [
        "memoryd",
        "mcp__memoryd__search",  # Claude Code, Codex
        "mcp_memoryd_search",  # Gemini CLI, Qwen Code
        "memoryd__search",
        "memoryd_search",  # OpenCode
        "memoryd-search",  # Copilot CLI
        "memoryd.search",
        "memoryd/read",
        "MEMORYD__note",
    ],
)
def test_calls_of_memoryds_mcp_tools_go_with_their_outputs(tool: str) -> None:
    items = [a_call('{"query": "uv"}', tool=tool), an_output("learned things")]
    assert cleaned(items) == ([], {"own_call": 1, "own_output": 1})


@pytest.mark.parametrize(
    "piece",
    ["/a/../", "/./", "//", "\\", "../", "cd memoryd;", "A=b ", "sudo ", "~", "$HOME", '"', "/a", "&amp;", MARKER_OPEN],
)
def test_hostile_commands_and_blocks_take_linear_time(piece: str) -> None:
    command = piece * (500_000 // len(piece))
    cleaned([a_call(command), an_item(command)])


def test_a_call_made_inside_the_home_goes() -> None:
    items = [a_call("cat MEMORY.md", cwd="/home/u/.memoryd/memories"), a_call("ls", "c2", cwd="/home/u")]
    assert cleaned(items) == (["ls"], {"own_call": 1})


def test_an_output_without_an_id_goes_with_the_call_just_before_it() -> None:
    items = [
        a_call("memoryd x", None),
        an_output("1", None),
        an_output("2", None),
        a_call("memoryd x", None),
        a_call("ls", None),
    ]
    kept, dropped = cleaned([*items, an_output("3", None)])
    assert kept == ["2", "ls", "3"]
    assert dropped == {"own_call": 2, "own_output": 1}


def test_homes_elsewhere_are_known_by_their_own_spellings() -> None:
    for home, command in (
        (Path("/root/mem/x"), "ls ~/mem/x"),
        (Path("/Users/u/Library/mem"), "ls ~/Library/mem/memories"),
        (Path("/srv/mem"), "ls /srv/mem"),
    ):
        assert cleaned([a_call(command)], home=home) == ([], {"own_call": 1})
    assert cleaned([a_call("ls ~/mem")], home=Path("/srv/mem"))[0] == ["ls ~/mem"]


def test_base64_and_terminal_escapes_are_no_evidence() -> None:
    blob = "iVBORw0KGgo" * 200
    text = f"\x1b[1;32mok\x1b[0m \x1b]8;;http://h\x07link\x1b]8;;\x1b\\ data:image/png;base64,{blob}== and {blob}"
    kept, dropped = cleaned([an_item(text)])
    assert kept == [f"ok link {BASE64_MARK} and {BASE64_MARK}"]
    assert dropped == {"base64": 2}


def test_halves_of_characters_are_replaced_and_whole_ones_joined() -> None:
    assert cleaned_text("a\ud83d b \ud83d\ude00 ü") == "a\ufffd b 😀 ü"


def test_an_output_without_text_stays_for_its_exit_code() -> None:
    assert cleaned([an_output("", exit_code=1), an_output(" ")]) == ([""], {"blank": 1})


def test_an_item_that_holds_nothing_to_take_out_is_the_same_item() -> None:
    item = an_item("plain words, 3 < 4 && b > c")
    assert [*sanitise([item], private_tags=["private"], home=HOME, dropped=Counter())] == [item]


PIECES = st.sampled_from(
    ["<private>", "</private>", "<private ", "&lt;", "&gt;", MARKER_OPEN, MARKER_CLOSE,
     "memoryd ", "\ud800", "\x1b[0m", "SECRET", "\n", "/"]
)  # fmt: skip


@given(
    st.lists(
        st.builds(
            Item,
            st.sampled_from(ItemKind),
            st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=8).map("".join),
            st.integers(0, 5),
            call_id=st.sampled_from([None, "a", "b"]),
            exit_code=st.sampled_from([None, 0, 1]),
        ),
        max_size=8,
    )
)
def test_sanitising_never_raises_and_lets_no_tag_or_private_word_through(items: list[Item]) -> None:
    kept = list(sanitise(items, private_tags=["private"], home=HOME, dropped=Counter()))
    assert [item.ordinal for item in kept if item in items] == [item.ordinal for item in kept if item in items]
    for item in kept:
        assert "<private>" not in item.text
        assert MARKER_OPEN not in item.text
        assert item.text.encode("utf-8") is not None


@given(st.text(max_size=20), st.text(max_size=20))
def test_what_stands_in_a_private_span_never_comes_out(before: str, inside: str) -> None:
    for closing in ("</private>", ""):
        text = cleaned_text(f"{before}<private>{inside}S3CR3T{closing}")
        assert "S3CR3T" not in text or "</private" in inside.lower()


ESCAPES = st.sampled_from(
    [
        *(("<", ">", "/"), ("&lt;", "&gt;", "/"), ("&amp;lt;", "&amp;gt;", "/"), ("&#60;", "&#x3e;", "/")),
        *(("\\u003c", "\\u003e", "\\/"), ("\\\\u003C", "\\\\u003E", "/"), ("%3C", "%3E", "%2F")),
    ]
)
WORDS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<>&\\%/#;"), max_size=12)


@st.composite
def spans(draw: st.DrawFn, depth: int = 2) -> str:
    """A well-formed private span, with spans inside it that are escaped otherwise."""
    less, greater, slash = draw(ESCAPES)
    name = draw(st.sampled_from(["private", "PRIVATE", "Private", "secret-part"]))
    attributes = draw(st.sampled_from(["", ' why="x"', "\n a=1 b=2", " "]))
    inside = draw(WORDS) + "S3CR3T" + draw(WORDS)
    if depth:
        inside += "".join(draw(st.lists(spans(depth=depth - 1), max_size=2))) + "S3CR3T"
    return f"{less}{name}{attributes}{greater}{inside}{less}{slash}{name}{greater}"


@given(st.lists(st.tuples(WORDS, spans()), max_size=4), WORDS)
def test_of_well_formed_spans_nothing_comes_out_and_everything_around_them_does(
    parts: list[tuple[str, str]], last: str
) -> None:
    text = "".join(before + span for before, span in parts)
    kept = cleaned_text(f"start {text}{last} end", tags=["private", "secret-part"])
    assert "S3CR3T" not in kept
    assert "private" not in kept.lower() or "private" in "".join([*(before for before, _ in parts), last]).lower()
    assert kept.startswith("start")
    assert kept.endswith(" end")
