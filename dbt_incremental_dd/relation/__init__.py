"""Relations: what operators compute with, by one algebra that two engines carry out."""
