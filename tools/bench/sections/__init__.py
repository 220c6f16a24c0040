"""What is measured, one function for each table."""
