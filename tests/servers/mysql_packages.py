"""Fetches a MySQL server into ``.mysql``: ``python -m tests.servers.mysql_packages``. Debian has one in its suite sid.

Nothing is installed, and apt's own state is left as it is: apt works with folders of its own, from where the machine's
packages come from, and checks signatures by Debian's keyring. A machine for which that is not possible is told so, and
tests of MySQL are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers.mysql import FOLDER

_SUITE, _PACKAGE = "sid", "mysql-server-core"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS = 600
_INDEX = re.compile(r"'([^']+)/dists/([^/']+)/InRelease'")


class _Impossible(Exception):
    """Why there is none to be had here."""


def main() -> None:
    """Fetches it, where it is not there."""
    if (FOLDER / "complete").exists():
        return
    try:
        with tempfile.TemporaryDirectory() as folder:
            packages = _fetched(Path(folder))
            shutil.rmtree(FOLDER, ignore_errors=True)
            for package in packages:
                _run("dpkg-deb", "--extract", str(package), str(FOLDER))
    except (_Impossible, OSError, subprocess.TimeoutExpired) as error:
        print(f"There is no MySQL server here, and its tests are skipped: {error}", file=sys.stderr)
        return
    shutil.rmtree(FOLDER / "usr/bin", ignore_errors=True)  # other programs, of 80 MB
    (FOLDER / "complete").touch()


def _fetched(folder: Path) -> list[Path]:
    """The package with all that it needs, as files of the folder."""
    if not _KEYRING.exists():
        raise _Impossible("no keyring of Debian's")
    folder.chmod(0o755)  # apt fetches as another user
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()  # nothing counts as installed
    options = {
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Retries": "2",
        "APT::Install-Recommends": "false",
        "APT::Update::Error-Mode": "any",
    }
    apt = ["apt-get", "-q", "-y", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    failure = _Impossible("apt has no source of Debian's packages")
    for archive in _archives():
        (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {archive} {_SUITE} main\n")
        try:
            _run(*apt, "update")
        except _Impossible as error:  # not Debian's
            failure = error
            continue
        _run(*apt, "install", "--download-only", _PACKAGE)
        return sorted((folder / "archives").glob("*.deb"))
    raise failure


def _archives() -> list[str]:
    """Where the machine's own packages come from; places of updates alone are left out."""
    found = _INDEX.findall(_run("apt-get", "update", "--print-uris"))
    return list(dict.fromkeys(uri for uri, suite in found if "-" not in suite))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise _Impossible(f"{command[0]} failed: {''.join(last)}")
    return done.stdout


if __name__ == "__main__":
    main()
