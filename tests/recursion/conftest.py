"""Claims of relations are looked at."""

from __future__ import annotations

from tests.claims import claims as claims
