"""What a program is started with, so that its datasets are accelerated and it need not know."""
