"""Whether the product keeps what was written at a cursor and cuts what breaks the document, and what that costs."""
