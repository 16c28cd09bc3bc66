"""How the tests' JVMs run: many of them, for some seconds or minutes, on few cores."""

from __future__ import annotations

import sys

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java, as in the Makefile. What the second compiler makes is seldom run again, and it took a third of the
processor's time; a collector with threads of its own costs what it gains. Large pages save a tenth, on Linux."""
if sys.platform == "linux":
    SHORT_LIVED += " -XX:+UseTransparentHugePages"
