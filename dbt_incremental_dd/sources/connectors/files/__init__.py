"""Files as a source: a folder, or one file of lines that grows."""
