"""A table of MariaDB or MySQL as a source: a consistent copy at first, and then the server's binary log."""
