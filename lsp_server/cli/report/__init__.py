"""`draftline report`: the command, its terminal tables and its HTML page."""
