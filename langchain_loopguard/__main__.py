"""`python -m langchain_loopguard` is `loopguard`."""

from langchain_loopguard.cli import main

if __name__ == "__main__":
    main()
