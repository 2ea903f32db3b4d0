"""The interoperation matrix: released clients and ours with each other's memory, over every protocol."""
