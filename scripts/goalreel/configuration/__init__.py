"""The options: a model of each section, and the schema, the page and the messages made of them."""
