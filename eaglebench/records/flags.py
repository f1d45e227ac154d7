"""How an option's name is typed, and which name a flag stands for."""


def flag_of(name: str) -> str:
    """`max_new_tokens` as it is typed: `--max-new-tokens`."""
    return f"--{name.replace('_', '-')}"


def name_of(flag: str) -> str:
    """`--max-new-tokens` as it is named: `max_new_tokens`."""
    return flag.removeprefix("--").replace("-", "_")
