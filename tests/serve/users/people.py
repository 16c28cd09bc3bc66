"""Files of users, and clients with their tokens."""

from __future__ import annotations

from pathlib import Path

from dbt_incremental_dd.serve.users.tokens import digest


def write_users(path: Path, **users: str) -> Path:
    """A file of users: each has its name as its token, and these settings."""
    lines = [f"  {name}: {{tokens: ['{digest(name)}'], {text}}}" for name, text in users.items()]
    path.write_text("\n".join(["users:", *lines]) + "\n")
    return path


def bearer(token: str) -> dict[str, str]:
    """The header of a request."""
    return {"authorization": f"Bearer {token}"}
