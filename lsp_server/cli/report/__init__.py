"""`draftline report`: the command, its tables and its page."""
