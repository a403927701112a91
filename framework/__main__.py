"""`python -m framework` is `paddock`."""

from framework.cli import main

main()
