"""The server: collections over HTTP, server-sent events, web sockets and Postgres' wire protocol."""
