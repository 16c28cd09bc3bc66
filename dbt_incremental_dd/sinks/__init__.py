"""Collections' changes written to where others read them."""
