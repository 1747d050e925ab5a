"""`python -m capbias_core`; the guard is for worker processes, which import this module again."""

from capbias_core.cli import command

if __name__ == "__main__":
    command()
