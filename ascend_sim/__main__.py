"""`python -m ascend_sim`: the command line."""

from ascend_sim.cli import main

if __name__ == "__main__":
    main()
