"""What a master starts."""

# First, because it takes standard output for the contract before anybody can print.
import mooncake_connector

from source import SQLiteSource

mooncake_connector.serve(SQLiteSource)
