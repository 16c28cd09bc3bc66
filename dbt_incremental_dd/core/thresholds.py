"""How much is worth doing on the driver, where no Spark job has to be planned. Read by attribute: they may be set."""

from __future__ import annotations

LOCAL_ROWS = 1_000_000
"""Deltas of at most so many rows are brought to the driver, where they become literals and small files."""
TASK_ROWS = 100_000
"""Rows in Spark of at most so many are one task's, so that what is computed of them needs no exchange."""
SUMMED_ROWS = 100_000
"""Updates of a relation that are summed whenever it is read, although none has been a deletion yet."""
TAKEN_ROWS = 200_000
"""Records of a source of which at most so many are taken in on the driver."""
MALFORMED_ROWS = 1_000_000
"""Records of one intake of which at most so many are set aside because they do not fit."""
PROBED_ROWS = 100_000_000
"""Stored rows that are filtered by keys on the driver at most."""
PROBED_BYTES = 4 << 30
"""Bytes of their files at most."""
CHECKED_BYTES = 64 << 20
"""Bytes of files that are read whole, once in a process, to verify their checksums before one read of them."""
FOUND_ROWS = 4_000_000
"""Rows that such a filter may leave, and rows of an output that are read on the driver."""
JOINED_ROWS = 16_000_000
"""Rows of a join on the driver at most."""
CROSSED_ROWS = 2_000_000
"""Pairs of rows that are looked at there at most where no key finds them."""
BROADCAST_ROWS = 500_000
"""A side of at most so many rows is sent to every task instead of being shuffled."""
KEPT_ROWS = 1_000
"""Rows that a LIMIT keeps in reserve, so that rows that go have their successors at hand."""
RECOMPUTED_ROWS = 20_000
"""Window functions' partitions with so many stored rows are recomputed where they change, whatever the change."""
ARRANGED_ROWS = 5_000_000
"""Stored rows that are looked through for keys of another order than theirs, before they are arranged by those."""
ARRANGED_SHARE = 50
"""So many times the rows that are found."""
