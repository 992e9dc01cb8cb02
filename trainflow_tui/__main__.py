"""`python -m trainflow_tui` is the command `trainflow`."""

from trainflow_tui.cli.main import main

if __name__ == "__main__":
    main()
