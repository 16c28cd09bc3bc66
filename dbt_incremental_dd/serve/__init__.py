"""Collections served to others: over HTTP, as events and web sockets, and over Postgres' wire protocol."""
