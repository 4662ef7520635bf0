"""Scripts as an analyst writes them: one file for each research task, run by `test_research`."""
