"""Who uses the server: tokens, the file of users and their rights, and how long each may stay."""
