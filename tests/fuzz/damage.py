"""Ways in which files come to be wrong, each drawn from a seeded generator."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

RAW = "\x00raw:"
"""In front of a text that stands in a JSON file without quotes."""
DEEP = 20_000
WEIRD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2,
    1.5,
    2**31,
    2**63,
    -(2**63),
    1e308,
    f"{RAW}1{'0' * 400}",
    f"{RAW}{'9' * 5000}",
    f"{RAW}1e999",
    f"{RAW}NaN",
    f"{RAW}-Infinity",
    "",
    " ",
    "x",
    "12",
    "\ud800",
    "\x00",
    "na\u00efve \U0001f680",
    "[/bold]",
    "x" * 5000,
    "../../x",
    "~nobody/x",
    [],
    {},
    [None],
    ["x", 1],
    [[[]]],
    {"x": 1},
    f"{RAW}{'[' * DEEP}{']' * DEEP}",
)
TEXTS: tuple[str, ...] = (
    *("", " ", "-1", "0", "1", "2", "3.5", "nan", "inf", "1e999", "9" * 400, "9" * 5000, "-", "--"),
    *(",", "1,", ",1", "1,1", "x", "x=y", "=", "a=b=c", "1:2", "2:1", "0:0", "8:", "1%", "100%"),
    *("\udcff", "na\u00efve \U0001f680", "[/bold]", "../..", "/dev/null", "/", ".", "~nobody/x"),
    *(
        "x" * 5000,
        "%s%n",
        "$(x)",
        "al:1%",
        "al:-1%",
        "al:1000000%",
        "throughput:0",
        "verify_steps:4",
    ),
    *("latest", "latest~1", "latest~99", f"latest~{'9' * 5000}", "tiny", "odd", "radix", "True"),
    *("{}", "[]", "null", "\n", "\x1b[31m", "1 2 3", "EAGLE3", "none", "auto", "target-only"),
)


def flip(content: bytes, random: Random) -> bytes:
    """Some bits of some bytes are others."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(content: bytes, random: Random) -> bytes:
    """The end is missing."""
    return content[: random.randrange(len(content) + 1)]


def insert(content: bytes, random: Random) -> bytes:
    """Bytes that nobody typed."""
    at = random.randrange(len(content) + 1)
    what = random.choice((b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"{", b"\n", b"\x1b"))
    return content[:at] + what + content[at:]


def drop_line(content: bytes, random: Random) -> bytes:
    """One line is missing."""
    lines = content.split(b"\n")
    del lines[random.randrange(len(lines))]
    return b"\n".join(lines)


def double_line(content: bytes, random: Random) -> bytes:
    """One line stands twice."""
    lines = content.split(b"\n")
    line = random.randrange(len(lines))
    lines.insert(random.randrange(len(lines)), lines[line])
    return b"\n".join(lines)


def swap_lines(content: bytes, random: Random) -> bytes:
    """Two lines have changed places."""
    lines = content.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def encode(content: bytes, random: Random) -> bytes:
    """The same text in another encoding."""
    text = content.decode("utf-8", "replace")
    return random.choice(
        (
            text.encode("utf-16"),
            text.encode("utf-16-be"),
            b"\xef\xbb\xbf" + content,
            text.replace("e", "\u00e9").encode("latin-1", "replace"),
            content.replace(b"\n", b"\r\n"),
            content.replace(b"\n", b"\r"),
            text.encode("utf-32"),
        )
    )


def replace(_content: bytes, random: Random) -> bytes:
    """Something else altogether."""
    wrong = (b"", b"\n", b"{}", b"[]", b"null", b"0", b"<html>", b"\x00" * 64, b"PAR1", b"a: b: c")
    deep = b"[" * DEEP
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    return random.choice((*wrong, deep, b'{"a":' * DEEP, pointer))


def change_value(content: bytes, random: Random) -> bytes:
    """A value of a JSON text, or of one line, is another one, is missing, or has company."""
    text = content.decode("utf-8", "replace")
    try:
        return _dumped(_changed(json.loads(text), random))
    except ValueError:
        lines = text.split("\n")
        number = random.randrange(len(lines))
        try:
            lines[number] = _dumped(_changed(json.loads(lines[number]), random)).decode()
        except ValueError:
            lines[number] = _reassigned(lines[number], random)
        return "\n".join(lines).encode("utf-8", "surrogatepass")


def change_number(content: bytes, random: Random) -> bytes:
    """A number somewhere is another number, so that only what it contradicts can tell."""
    found = list(re.finditer(rb"(?<![\w.\"])-?\d+(?:\.\d+)?(?![\w.\"])", content))
    if not found:
        return content
    chosen = random.choice(found)
    number = random.choice((b"0", b"1", b"2", b"-1", b"7", b"1000000", b"0.5", b"-3.5", b"9" * 18))
    return content[: chosen.start()] + number + content[chosen.end() :]


def _changed(value: Any, random: Random) -> Any:
    if not isinstance(value, dict | list) or not value or random.random() < 0.04:
        return random.choice(WEIRD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = random.choice(keys)
    what = random.random()
    if what < 0.1:
        del value[key]
    elif what < 0.2 and isinstance(value, dict):
        value[f"new_{random.randrange(9)}"] = random.choice(WEIRD)
    else:
        value[key] = _changed(value[key], random)
    return value


def _dumped(value: Any) -> bytes:
    text = json.dumps(value)
    raw = json.dumps(RAW)[1:-1]
    return re.sub(rf'"{re.escape(raw)}([^"]*)"', r"\1", text).encode()


def _reassigned(line: str, random: Random) -> str:
    """A line of TOML or YAML with another value."""
    name, sign, _ = line.partition("=" if "=" in line else ":")
    wrong = ("-1", "0", "1e999", "nan", '"x"', "[]", "{}", "true", "9" * 5000, "[" * 3000)
    more = (
        "1, 2",
        '["a", 1]',
        "2026-13-45",
        "*a",
        "&a [*a]",
        "!!python/object:x",
        '"\\ud800"',
        "''",
    )
    return f"{name}{sign} {random.choice((*wrong, *more))}"


DAMAGES: tuple[Damage, ...] = (
    *(flip, cut, insert, drop_line, double_line, swap_lines, encode, replace),
    *(change_value,) * 8,
    *(change_number,) * 8,
)


def damage_file(path: Path, random: Random) -> str:
    """Make a file wrong in one way or two, and say how; sometimes it becomes a folder or is gone."""
    content = path.read_bytes()
    what = random.random()
    if what < 0.06:
        path.unlink()
        if what < 0.02:
            path.mkdir()
            return "a folder"
        if what < 0.04:
            path.symlink_to(path.name)
            return "a link to itself"
        return "gone"
    names = []
    for _ in range(random.choice((1, 1, 2))):
        damage = random.choice(DAMAGES)
        content = damage(content, random)
        names.append(damage.__name__)
    path.write_bytes(content)
    return ", ".join(names)
