"""Methods that reason with rules from the start: PARIS and PRASE."""
