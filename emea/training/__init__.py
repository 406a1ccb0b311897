"""What happens to a fit while it runs: turns with mined labels, an early end."""
