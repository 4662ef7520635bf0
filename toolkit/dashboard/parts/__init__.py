"""Tables, figures and widgets that several pages have."""
