"""`python -m dragoman` is the command `dragoman`."""

from dragoman.cli.main import entry

if __name__ == "__main__":
    entry()
