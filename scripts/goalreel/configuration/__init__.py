"""Define the options as models, with their schema, page and error messages."""
