"""What each command of the command line does: reads its arguments, calls the packages, prints. No logic of theirs."""
