"""A project of 50 models in chains over 10 sources."""
