"""The names and commands of MMS, over Forecastle."""
