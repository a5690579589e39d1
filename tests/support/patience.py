"""How long a test waits for another process or thread: this is a verdict on a hang, never on speed."""

PATIENCE_S = 600
