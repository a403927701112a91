"""The tests of Paddock; the tree mirrors the packages they test."""
