"""How the tests' JVMs run: many of them, for some seconds or minutes, on few cores."""

from __future__ import annotations

from pathlib import Path

_LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Linux's setting. Where it says never, Java would warn of the option."""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java, as in the Makefile. What the second compiler makes is seldom run again, and it took a third of the
processor's time; a collector with threads of its own costs what it gains. Large pages save a tenth."""
if _LARGE_PAGES.exists() and "[never]" not in _LARGE_PAGES.read_text():
    SHORT_LIVED += " -XX:+UseTransparentHugePages"
