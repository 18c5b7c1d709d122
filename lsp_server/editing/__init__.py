"""Edits that the user asks for, besides suggestions at the cursor."""
