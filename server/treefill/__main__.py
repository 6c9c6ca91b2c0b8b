"""`python -m treefill` is the `treefill` command."""

from treefill.cli import main

if __name__ == "__main__":
    main()
