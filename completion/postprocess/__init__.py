"""The filters that have the last word on a suggestion, one file each."""
