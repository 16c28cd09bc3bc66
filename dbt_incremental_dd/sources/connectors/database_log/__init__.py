"""What connectors to a database have in common that copy tables first, and then follow the database's own log."""
