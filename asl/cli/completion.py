"""`asl completion`: completion of commands, options and values in shells."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from asl.cli import console
from asl.cli.completion_values import VALUES, ValueType
from asl.cli.console import Exit
from asl.cli.main import COMMANDS, COMPLETION_VARIABLE

__all__ = ["completion_command", "register_shells"]

Items = list[CompletionItem[str]]

_POWERSHELL: Final = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = $commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object { if ($null -eq $_.Value) { $_.Extent.Text } else { "$($_.Value)" } }
    $Env:COMP_WORDS = $before -join "`n"
    $Env:COMP_WORD = $wordToComplete.Trim("'", '"')
    $Env:%(complete_var)s = "powershell_complete"
    try {
        %(prog_name)s | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            $text = $value
            if ($value -match "[^\\w./\\\\:@%%+=,-]") {
                $text = "'" + $value.Replace("'", "''") + "'"
            }
            if (-not $help) { $help = $value }
            $result = [System.Management.Automation.CompletionResult]
            $result::new($text, $value, "ParameterValue", $help)
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_WORD, Env:%(complete_var)s
    }
}
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
def completion_command(shell: str) -> Exit:
    """Print the script that completes commands, options and values in a shell.

    \b
        bash        eval "$(asl completion bash)" in ~/.bashrc
        zsh         eval "$(asl completion zsh)" in ~/.zshrc, after compinit
        fish        asl completion fish > ~/.config/fish/completions/asl.fish
        powershell  asl completion powershell | Out-String | Invoke-Expression in $PROFILE
    """
    cli = click.get_current_context().find_root().command
    console.write_result(_SHELLS[shell](cli, {}, "asl", COMPLETION_VARIABLE).source())
    return Exit.OK


def register_shells() -> None:
    """Make click complete the commands and values of `asl`."""
    for each in _SHELLS.values():
        add_completion_class(each)


class _Completer(ShellComplete):
    """Completes commands of two words, and the values of options and arguments."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        """Return what may follow the words before the cursor."""
        if not args and not incomplete.startswith("-"):
            return [*_words(0, [], incomplete)]
        second = [*_words(1, args, incomplete)] if len(args) == 1 else []
        name = next((each for each in (" ".join(args[:2]), *args[:1]) if each in COMMANDS), None)
        if name is None:
            return second or super().get_completions(args, incomplete)
        group = click.Context(self.cli, info_name=self.prog_name, **self.cli.context_settings)
        command = cast(click.Group, self.cli).get_command(group, name)
        assert command is not None
        given = args[len(name.split()) :]
        if given and given[-1].startswith("-"):
            given.pop()  # the option whose value is completed
        context = command.make_context(name, given, parent=group, resilient_parsing=True)
        with _value_types(command, context.params):
            return [*super().get_completions(args, incomplete), *second]


@contextmanager
def _value_types(command: click.Command, known: Mapping[str, Any]) -> Iterator[None]:
    """Give the parameters of a command types that list their values, for a while."""
    types = [(each, each.type) for each in command.params]
    for parameter in command.params:
        find = VALUES.get(parameter.opts[0]) or VALUES.get(parameter.metavar or "")
        if find is not None:
            parameter.type = ValueType(find, known)
    try:
        yield
    finally:
        for parameter, before in types:
            parameter.type = before


def _words(place: int, before: Sequence[str], incomplete: str) -> Iterator[CompletionItem[str]]:
    """Yield the first or the second words of commands, with their help."""
    found: dict[str, str] = {}
    for name, row in COMMANDS.items():
        words = name.split()
        if len(words) > place and words[:place] == list(before):
            found.setdefault(words[place], row.help)
    for word, text in found.items():
        if word.startswith(incomplete):
            yield CompletionItem(word, help=text)


class _Bash(_Completer, BashComplete):
    source_template = BashComplete.source_template.replace("read type", "read -r type")

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the type and the value, quoted unless a quote is open."""
        word = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"]) :]
        is_quoted = bool(word) and word[0].startswith(("'", '"'))
        value = item.value if is_quoted else re.sub(r"([^\w@%+=:,./-])", r"\\\1", item.value)
        return f"{item.type},{value}"


class _Zsh(_Completer, ZshComplete):
    pass


class _Fish(_Completer, FishComplete):
    pass


class _PowerShell(_Completer):
    """Without values the shell completes files itself."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at it."""
        return os.environ["COMP_WORDS"].split("\n")[1:], os.environ["COMP_WORD"]

    def complete(self) -> str:
        """Return a line for each value: the value and its help."""
        items = self.get_completions(*self.get_completion_args())
        return "\n".join(map(self.format_completion, (i for i in items if i.type == "plain")))

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the value and its help."""
        return f"{item.value}\t{item.help}" if item.help else item.value


_SHELLS: Final[dict[str, type[ShellComplete]]] = {
    "bash": _Bash,
    "zsh": _Zsh,
    "fish": _Fish,
    "powershell": _PowerShell,
}
