"""`python -m eaglebench` is the same as `eaglebench`."""

from eaglebench.cli.main import main

if __name__ == "__main__":
    main()
