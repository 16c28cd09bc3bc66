"""The Postgres wire protocol server, as its clients see it."""
