"""`python -m capbias_core`."""

from capbias_core.cli import command

if __name__ == "__main__":
    command()
