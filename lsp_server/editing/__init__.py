"""Edits of the document, besides suggestions at the cursor."""
