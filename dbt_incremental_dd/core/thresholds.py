"""Limits of what is computed on the driver, without a Spark job. Read them as attributes of this module: they may be
set."""

from __future__ import annotations

LOCAL_ROWS = 1_000_000
"""Larger deltas stay in Spark. Smaller ones are brought to the driver, where they become literals and small files."""
TASK_ROWS = 100_000
"""Maximum number of rows in Spark that are put into one partition, so that what follows needs no exchange."""
SUMMED_ROWS = 100_000
"""Maximum number of updates of a relation that are summed when it is read, even if none has been a deletion yet."""
TAKEN_ROWS = 200_000
"""Maximum number of a source's records that are read on the driver."""
MALFORMED_ROWS = 1_000_000
"""Maximum number of malformed records that one intake sets aside."""
PROBED_ROWS = 100_000_000
"""Maximum number of stored rows that are filtered by keys on the driver."""
PROBED_BYTES = 4 << 30
"""Maximum number of bytes of their files."""
CHECKED_BYTES = 64 << 20
"""Maximum number of bytes of files that are checked before a read, once in a process, by reading them whole."""
FOUND_ROWS = 4_000_000
"""Maximum number of rows that such a filter returns, and that are read of an output on the driver."""
JOINED_ROWS = 16_000_000
"""Maximum number of rows of a join on the driver."""
CROSSED_ROWS = 2_000_000
"""Maximum number of pairs of rows that a join without keys compares on the driver."""
BROADCAST_ROWS = 500_000
"""Maximum number of rows of a join side that is broadcast instead of shuffled."""
KEPT_ROWS = 1_000
"""Spare rows that a LIMIT stores, to replace rows that are deleted."""
RECOMPUTED_ROWS = 20_000
"""Maximum number of stored rows of a window partition that any change recomputes."""
ARRANGED_ROWS = 5_000_000
"""Maximum number of stored rows that a model searches for few keys in another order than theirs, before it stores them
sorted by these keys."""
ARRANGED_SHARE = 50
"""Minimum ratio of the rows that are searched to those that are found, for the same."""
