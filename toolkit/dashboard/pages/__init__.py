"""The pages, a package each, and the script that shows one of them."""
