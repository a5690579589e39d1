"""The longest wait of a test for another process or thread. It finds hangs, and judges no speed."""

PATIENCE_S = 600
