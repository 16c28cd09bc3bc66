"""One run: choose the target time, take in sources, compile, render, commit; and verify what is stored."""
