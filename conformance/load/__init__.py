"""Loads of many objects through the released clients, judged by what the clients read and what the master charges."""
