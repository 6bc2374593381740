"""Completion for shells: what the parsers of all commands understand, as a script that asks nobody while one types."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from memoryd.text import on_one_line

PROGRAM: Final = "memoryd"
_FOLDERS: Final = frozenset({"DIR"})
_FILES: Final = frozenset({"FILE", "PATH", "PROGRAM", "PATH|THREAD"})


class Value(StrEnum):
    """What may stand after an option, or in the place of a word."""

    NOTHING = "nothing"
    ANY = "any"
    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Option:
    """An option by all its names; `choices` are the words that may follow."""

    names: tuple[str, ...]
    meaning: str
    value: Value
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """What a command, or an action of one, understands: options, words of its own, and actions below it."""

    meaning: str = ""
    options: tuple[Option, ...] = ()
    choices: tuple[str, ...] = ()
    takes_files: bool = False
    below: Mapping[str, "Words"] = field(default_factory=dict)

    @property
    def first(self) -> tuple[str, ...]:
        """Return the words that may stand first."""
        return (*self.below, *self.choices)


def words_of(parser: argparse.ArgumentParser, meaning: str = "", *, known: tuple[str, ...] = ()) -> Words:
    """Read what a parser understands; `known` are further words that its command takes."""
    options: list[Option] = []
    choices: list[str] = []
    below: dict[str, Words] = {}
    takes_files = False
    for action in parser._actions:  # noqa: SLF001 - argparse has no other word for what a parser understands
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            meanings = {each.dest: each.help for each in action._choices_actions}  # noqa: SLF001 - as above
            below |= {name: words_of(each, meanings.get(name) or "") for name, each in action.choices.items()}
        elif action.option_strings:
            given = tuple(str(choice) for choice in action.choices or ())
            options.append(Option(tuple(action.option_strings), _help(action), _value(action), given))
        else:
            choices += [str(choice) for choice in action.choices or ()]
            takes_files = takes_files or _value(action) in {Value.FILE, Value.FOLDER}
    return Words(meaning, tuple(options), (*choices, *known), takes_files, below)


def _help(action: argparse.Action) -> str:
    return on_one_line((action.help or "").replace("%%", "%").partition(";")[0].partition(" (")[0])


def _value(action: argparse.Action) -> Value:
    if action.nargs == 0:
        return Value.NOTHING
    metavar = str(action.metavar or "")
    if metavar in _FOLDERS:
        return Value.FOLDER
    return Value.FILE if action.type is Path or metavar in _FILES else Value.ANY


_BASH_PATHS: Final = f"""\
# A file may be called anything, a command line too: what is offered of it is a word, and nothing in it is run.
_{PROGRAM}_paths() {{
    local path raw="$cur"
    case "$raw" in
        [\\"\\']*) raw="${{raw#?}}" ;;
        *) raw="${{raw//\\\\/}}" ;;
    esac
    local -a found=()
    while IFS= read -r path; do
        [ -n "$path" ] && found+=("$path")
    done < <(compgen "$1" -- "$raw")
    if ! compopt -o filenames 2>/dev/null; then
        for path in ${{found[@]+"${{!found[@]}}"}}; do found[path]="$(printf %q "${{found[path]}}")"; done
    fi
    COMPREPLY+=(${{found[@]+"${{found[@]}}"}})
}}
"""
"""Without compopt (bash 3.2, or called by hand) names are quoted here; with it readline does so."""


def bash(commands: Mapping[str, Words]) -> str:
    """Return the script for bash (3.2 or later): `source <(memoryd completion bash)`."""
    rows = [
        f"# bash completion for {PROGRAM}, made by `{PROGRAM} completion bash`.",
        *_BASH_PATHS.splitlines(),
        f"_{PROGRAM}() {{",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" place="" word i',
        "    COMPREPLY=()",
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        word="${COMP_WORDS[i]}"',
        '        case "$word" in',
        "            --home) ((i++)) ;;",
        "            -*) ;;",
        '            *) case "$place" in',
        f"{_bash_places(commands)}",
        "            esac ;;",
        "        esac",
        "    done",
        '    case "$place:$prev" in',
        *(f"        {row}" for row in _bash_values(commands)),
        "    esac",
        '    case "$place" in',
        *(f"        {row}" for row in _bash_words(commands)),
        "    esac",
        "}",
        f"complete -F _{PROGRAM} {PROGRAM}",
        "",
    ]
    return "\n".join(rows)


def _bash_places(commands: Mapping[str, Words]) -> str:
    """Say which words lead to another place: a command, then an action of it."""
    rows = ['"") place="$word" ;;']
    for name, words in commands.items():
        if words.below:
            rows.append(f'{name}) case "$word" in {"|".join(words.below)}) place="{name} $word" ;; esac ;;')
    return "\n".join(f"                {row}" for row in rows)


def _places(commands: Mapping[str, Words]) -> Iterator[tuple[str, Words]]:
    for name, words in commands.items():
        yield name, words
        yield from ((f"{name} {action}", each) for action, each in words.below.items())


def _bash_values(commands: Mapping[str, Words]) -> list[str]:
    answers = {
        Value.FILE: f"_{PROGRAM}_paths -f; return ;;",
        Value.FOLDER: f"_{PROGRAM}_paths -d; return ;;",
        Value.ANY: "return ;;",
    }
    rows = [f"*:--home) {answers[Value.FOLDER]}"]
    for place, words in _places(commands):
        for option in words.options:
            if option.value is Value.NOTHING or option.names == ("--home",):
                continue
            names = "|".join(f'"{place}:{name}"' for name in option.names)
            known = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur")); return ;;'
            rows.append(f"{names}) {known if option.choices else answers[option.value]}")
    return rows


def _bash_words(commands: Mapping[str, Words]) -> list[str]:
    first = " ".join([*commands, "--help", "--version", "--home"])
    rows = [f'"") COMPREPLY=($(compgen -W "{first}" -- "$cur")) ;;']
    for place, words in _places(commands):
        known = " ".join([*words.first, *(name for option in words.options for name in option.names)])
        steps = [f'COMPREPLY=($(compgen -W "{known}" -- "$cur"))']
        steps += [f'[[ "$cur" == -* ]] || _{PROGRAM}_paths -f'] if words.takes_files else []
        rows.append(f'"{place}") {"; ".join(steps)} ;;')
    return rows


def zsh(commands: Mapping[str, Words]) -> str:
    """Return the script for zsh: as `_memoryd` in a folder of $fpath, or `source <(memoryd completion zsh)`."""
    rows = [
        f"#compdef {PROGRAM}",
        f"# zsh completion for {PROGRAM}, made by `{PROGRAM} completion zsh`.",
        f"_{PROGRAM}() {{",
        "    local context state state_descr",
        "    local -a line",
        "    typeset -A opt_args",
        f"    _arguments -C '--home[{PROGRAM}'\\''s folder]:folder:_files -/' '1: :->command' '*:: :->rest'",
        '    case "$state" in',
        "        command)",
        "            local -a commands=(",
        *(f"                {_quoted(f'{name}:{words.meaning}')}" for name, words in commands.items()),
        "            )",
        "            _describe command commands ;;",
        "        rest)",
        '            case "$line[1]" in',
    ]
    for name, words in commands.items():
        rows += [f"                {name})", *_zsh_arguments(words, " " * 20), "                    ;;"]
    # autoloaded from $fpath, this file is the body of the function at its first call; sourced, it has to be registered
    ends = f'if [ "$funcstack[1]" = "_{PROGRAM}" ]; then _{PROGRAM} "$@"; else compdef _{PROGRAM} {PROGRAM}; fi'
    rows += ["            esac ;;", "    esac", "}", ends, ""]
    return "\n".join(rows)


def _zsh_arguments(words: Words, indent: str) -> list[str]:
    specs = [_zsh_option(name, option) for option in words.options for name in option.names]
    specs += [_quoted(f"*: :({' '.join(words.choices)})")] if words.choices else []
    specs += ["'*:: :_files'"] if words.takes_files else []
    if not words.below:
        return [f"{indent}_arguments {' '.join(specs)}"]
    actions = " ".join(_zsh_word(f"{name}:{each.meaning}") for name, each in words.below.items())
    rows = [f'{indent}case "$words[2]" in']
    for name, each in words.below.items():
        below = [_zsh_option(option, known) for known in each.options for option in known.names]
        rows.append(f"{indent}    {name}) _arguments '1: :' {' '.join(below)} ;;")
    last = " ".join([_quoted(f"1: :(({actions}))"), *specs])
    return [*rows, f"{indent}    *) _arguments {last} ;;", f"{indent}esac"]


def _zsh_option(name: str, option: Option) -> str:
    meaning = option.meaning.replace("[", "(").replace("]", ")").replace(":", " ")
    takes = {
        Value.NOTHING: "",
        Value.ANY: ": : ",
        Value.FILE: ":file:_files",
        Value.FOLDER: ":folder:_files -/",
    }[option.value]
    known = f": :({' '.join(option.choices)})" if option.choices else takes
    return _quoted(f"{name}[{meaning}]{known}")


def _zsh_word(text: str) -> str:
    name, _, meaning = text.partition(":")
    cleaned = "".join(letter for letter in meaning if letter.isalnum() or letter in " ,.-")
    return f'{name}\\:"{cleaned}"'


_FISH_PLACE: Final = """\
# whether the words so far are this command and this action of it; without any: whether a command is still due
function __memoryd_at
    set -l found
    set -l skips no
    for word in (commandline -opc)[2..-1]
        if test $skips = yes
            set skips no
        else if test "$word" = --home
            set skips yes
        else if not string match -q -- '-*' "$word"
            set -a found $word
        end
    end
    test (count $found) -ge (count $argv); or return 1
    test (count $argv) -gt 0; or begin; test (count $found) -eq 0; return; end
    test "$found[1..$(count $argv)]" = "$argv"
end"""


def fish(commands: Mapping[str, Words]) -> str:
    """Return the script for fish: `memoryd completion fish > ~/.config/fish/completions/memoryd.fish`."""
    rows = [
        f"# fish completion for {PROGRAM}, made by `{PROGRAM} completion fish`.",
        _FISH_PLACE,
        f"complete -c {PROGRAM} -f",
        f"complete -c {PROGRAM} -l home -x -a '(__fish_complete_directories)' -d {_quoted('its folder')}",
    ]
    for name, words in commands.items():
        rows.append(f"complete -c {PROGRAM} -n __memoryd_at -a {name} -d {_quoted(words.meaning)}")
        rows += _fish_words(name, words)
        for action, each in words.below.items():
            rows += _fish_words(f"{name} {action}", each)
    return "\n".join([*rows, ""])


def _fish_words(place: str, words: Words) -> list[str]:
    start = f"complete -c {PROGRAM} -n {_quoted(f'__memoryd_at {place}')}"
    rows = [f"{start} -a {name} -d {_quoted(each.meaning)}" for name, each in words.below.items()]
    rows += [f"{start} -a {_quoted(' '.join(words.choices))}"] if words.choices else []
    rows += [f"{start} -F"] if words.takes_files else []
    for option in words.options:
        if option.names == ("--home",):
            continue
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        known = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else _FISH_VALUES[option.value]
        rows.append(f"{start} {names}{known} -d {_quoted(option.meaning)}")
    return rows


_FISH_VALUES: Final = {
    Value.NOTHING: "",
    Value.ANY: " -x",
    Value.FILE: " -r -F",
    Value.FOLDER: " -x -a '(__fish_complete_directories)'",
}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Final[Mapping[str, Callable[[Mapping[str, Words]], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
