"""Entry point of `python -m asl`, which is the command `asl`."""

from asl.cli.main import main

if __name__ == "__main__":
    main()
