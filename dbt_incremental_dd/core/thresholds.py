"""Limits of what is computed on the driver, without a Spark job. Read them as attributes of this module: they may be
set."""

from __future__ import annotations

LOCAL_ROWS = 1_000_000
"""Larger deltas stay in Spark. Smaller ones are brought to the driver, where they become literals and small files."""
TASK_ROWS = 100_000
"""At most so many rows in Spark are put into one partition, so that what follows needs no exchange."""
SUMMED_ROWS = 100_000
"""At most so many updates of a relation are summed when it is read, even if none has been a deletion yet."""
TAKEN_ROWS = 200_000
"""At most so many records of a source are read on the driver."""
MALFORMED_ROWS = 1_000_000
"""At most so many malformed records of one intake are set aside."""
PROBED_ROWS = 100_000_000
"""At most so many stored rows are filtered by keys on the driver."""
PROBED_BYTES = 4 << 30
"""At most so many bytes of their files."""
CHECKED_BYTES = 64 << 20
"""At most so many bytes of files are read whole before a read, once in a process, to verify their checksums."""
FOUND_ROWS = 4_000_000
"""At most so many rows may such a filter return, and may be read of an output on the driver."""
JOINED_ROWS = 16_000_000
"""Maximum number of rows of a join on the driver."""
CROSSED_ROWS = 2_000_000
"""Maximum number of pairs of rows that a join without keys compares on the driver."""
BROADCAST_ROWS = 500_000
"""A join side of at most so many rows is broadcast instead of shuffled."""
KEPT_ROWS = 1_000
"""Spare rows that a LIMIT stores, to replace rows that are deleted."""
RECOMPUTED_ROWS = 20_000
"""Partitions of window functions with at most so many stored rows are recomputed by any change."""
ARRANGED_ROWS = 5_000_000
"""A model that searches more stored rows for few keys, in another order than theirs, stores them sorted by these
keys."""
ARRANGED_SHARE = 50
"""But only if they are so many times the rows that are found."""
