"""The HTTP protocol: rows, changes as server-sent events and over web sockets, and pages (``../static``)."""
